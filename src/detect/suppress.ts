import type { Finding } from "../core/finding.ts";

/**
 * Drops what another finding of the same run already says: a charge without a row that stands in a
 * double charge is told there, as "no local row", and not again as an orphan (cases B02, B05).
 */
export function suppressCovered(findings: readonly Finding[]): Finding[] {
  const doubled = new Set(
    findings
      .filter((finding) => finding.code === "double_charge")
      .flatMap((finding) => finding.charges),
  );
  return findings.filter(
    (finding) =>
      finding.code !== "orphan_charge" || !finding.charges.every((charge) => doubled.has(charge)),
  );
}
