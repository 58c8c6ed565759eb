import type { Finding } from "../core/finding.ts";
import { SEVERITY_RANK } from "../core/finding.ts";
import { incidentId } from "../core/incident.ts";

/** A finding that is the only one of its (code, subject), with the id of its incident. */
export interface FoldedFinding extends Finding {
  readonly id: string;
}

// The CHECK of tallyd.incident.subject. A longer one keeps its head and the hash of the whole.
const SUBJECT_CHARS_MAX = 1_400;

/**
 * Makes one finding of all of one (code, subject): several detectors, or one by several bases, may
 * see the same trouble. Intents and charges are united, the worst severity leads, money is added up
 * only where the parts name different charges of one currency. Order: code, then subject.
 */
export function foldFindings(findings: readonly Finding[]): readonly FoldedFinding[] {
  const folded = new Map<string, FoldedFinding>();
  for (const finding of findings) {
    const subject = boundSubject(finding.code, finding.subject);
    const id = incidentId(finding.code, subject);
    const known = folded.get(id);
    const next = { ...finding, subject, id };
    folded.set(id, known === undefined ? next : merge(known, next));
  }
  return [...folded.values()].sort(
    (a, b) => compare(a.code, b.code) || compare(a.subject, b.subject),
  );
}

/** Code unit order: the same on every machine, whatever its locale. */
function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function boundSubject(code: string, subject: string): string {
  if (subject.length <= SUBJECT_CHARS_MAX) return subject;
  const hash = incidentId(code, subject);
  return `${subject.slice(0, SUBJECT_CHARS_MAX - hash.length - 1)}#${hash}`;
}

function merge(first: FoldedFinding, second: FoldedFinding): FoldedFinding {
  const worse = SEVERITY_RANK[second.severity] > SEVERITY_RANK[first.severity];
  const lead = worse ? second : first;
  return {
    ...lead,
    operationId: lead.operationId ?? (worse ? first : second).operationId,
    intents: union(first.intents, second.intents),
    charges: union(first.charges, second.charges),
    ...mergeMoney(first, second, lead),
    occurredAt: earlier(first.occurredAt, second.occurredAt),
  };
}

function mergeMoney(
  first: Finding,
  second: Finding,
  lead: Finding,
): Pick<Finding, "amountAtRisk" | "currency"> {
  const { amountAtRisk, currency } = lead;
  if (first.amountAtRisk === null) return second.amountAtRisk === null ? lead : pickMoney(second);
  if (second.amountAtRisk === null) return pickMoney(first);
  // Two currencies cannot be added: the lead's money is named, the other stays in its charges.
  if (first.currency !== second.currency) return { amountAtRisk, currency };
  const shared = first.charges.some((charge) => second.charges.includes(charge));
  if (!shared) return { amountAtRisk: first.amountAtRisk + second.amountAtRisk, currency };
  // The same money seen twice must not look like twice the money.
  const more = first.amountAtRisk > second.amountAtRisk ? first : second;
  return { amountAtRisk: more.amountAtRisk, currency };
}

function pickMoney(finding: Finding): Pick<Finding, "amountAtRisk" | "currency"> {
  return { amountAtRisk: finding.amountAtRisk, currency: finding.currency };
}

function union(first: readonly string[], second: readonly string[]): readonly string[] {
  return [...new Set([...first, ...second])];
}

function earlier(first: Date | null, second: Date | null): Date | null {
  if (first === null || second === null) return first ?? second;
  return first < second ? first : second;
}
