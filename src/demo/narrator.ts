/** Tells the story as it happens: incidents and resolutions, one line each. */
import { formatAmount } from "../core/money.ts";
import type { IncidentJson } from "../incident/present.ts";

/** A row that was settled, as the story tells it. */
export interface Settled {
  readonly id: string;
  readonly intentId: string;
  readonly from: string;
  readonly to: string;
  readonly reason: string;
}

export interface Narrator {
  readonly tell: (line: string) => void;
  readonly incidents: (list: readonly IncidentJson[]) => void;
  readonly resolutions: (list: readonly Settled[]) => void;
}

const SIGN: Readonly<Record<string, string>> = {
  critical: "CRITICAL",
  warning: "WARNING ",
  info: "INFO    ",
};

/** A narrator that writes through `write`; times count from its making. */
export function createNarrator(write: (line: string) => void, now: () => number): Narrator {
  const startedAt = now();
  const seen = new Map<string, string>();
  const settled = new Set<string>();
  const tell = (line: string): void => {
    const seconds = ((now() - startedAt) / 1000).toFixed(1).padStart(5);
    write(`${seconds}s  ${line}`);
  };
  return {
    tell,
    incidents: (list) => {
      for (const incident of [...list].reverse()) {
        const before = seen.get(incident.id);
        const state = incident.status;
        if (before === state) continue;
        seen.set(incident.id, state);
        tell(lineOf(incident, before));
      }
    },
    resolutions: (list) => {
      for (const one of list) {
        if (settled.has(one.id)) continue;
        settled.add(one.id);
        tell(`RESOLVED  ${one.intentId}: ${one.from} -> ${one.to}  (${one.reason})`);
      }
    },
  };
}

function lineOf(incident: IncidentJson, before: string | undefined): string {
  const { code, summary, amountAtRisk, currency, status } = incident;
  if (status === "closed") return `OVER      ${code}: ${summary}`;
  const money =
    amountAtRisk === null || currency === null || amountAtRisk === "0"
      ? ""
      : `  [${formatAmount(BigInt(amountAtRisk), currency)} at risk]`;
  const again = before === undefined ? "" : " again";
  return `${SIGN[incident.severity] ?? ""}  ${code}${again}: ${summary}${money}`;
}
