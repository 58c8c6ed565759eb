/** An incident is a finding's life over time; these are its shape and the steps of its life. */
import { createHash } from "node:crypto";

import type { Code, Severity } from "./finding.ts";

export const INCIDENT_STATUSES = ["open", "acknowledged", "muted", "closed"] as const;
export type IncidentStatus = (typeof INCIDENT_STATUSES)[number];

/** The facts on which a person closed or muted an incident: worse ones bring it back. */
export interface Verdict {
  readonly severity: Severity;
  readonly intents: readonly string[];
  readonly charges: readonly string[];
  /** Minor units; `null`: no money was named. */
  readonly amountAtRisk: bigint | null;
  readonly currency: string | null;
  /** Refunds of the charges that had failed already. */
  readonly failedRefunds: readonly string[];
}

export interface Incident {
  readonly id: string;
  readonly code: Code;
  readonly subject: string;
  /** `null`: about a source, an account or a day, not about an operation. */
  readonly operationId: string | null;
  readonly severity: Severity;
  readonly status: IncidentStatus;
  readonly basis: string | null;
  readonly rail: string | null;
  readonly scope: string | null;
  readonly intents: readonly string[];
  readonly charges: readonly string[];
  readonly amountAtRisk: bigint | null;
  readonly currency: string | null;
  readonly occurredAt: Date | null;
  readonly firstSeen: Date;
  readonly lastSeen: Date;
  /** Runs that found it. */
  readonly count: number;
  readonly summary: string;
  readonly advice: string;
  readonly evidence: Readonly<Record<string, unknown>>;
  /** `null` while muted: until the facts get worse. */
  readonly mutedUntil: Date | null;
  readonly closedAt: Date | null;
  readonly closedBy: "facts" | "person" | null;
  /** Facts of the last closing or muting; `null`: neither happened. */
  readonly verdict: Verdict | null;
  /** Severity last told; `null`: never told, or the last word told was that it is over. */
  readonly told: Severity | null;
}

/** What got worse, with the words that tell it. */
export interface Change {
  readonly what: "charge" | "intent" | "severity" | "amount" | "refund_failed";
  readonly words: string;
}

/**
 * `refreshed`, `eased` and `absorbed` are quiet. `absorbed`: the same trouble goes on under another
 * incident. `continued`: the other side of it, an incident that takes over from an older one.
 */
export type StepKind =
  | "opened"
  | "continued"
  | "refreshed"
  | "worsened"
  | "eased"
  | "unmuted"
  | "closed"
  | "absorbed"
  | "corrected"
  | "reopened";

export interface Step {
  readonly kind: StepKind;
  /** As stored before; `null`: the incident is new. */
  readonly before: Incident | null;
  readonly after: Incident;
  /** What got worse; empty unless it did. */
  readonly changes: readonly Change[];
  /** Words for the incident's history; `null`: the kind says it all. */
  readonly note: string | null;
}

/** What turned out about an incident whose finding is gone. */
export type Correction =
  | { readonly kind: "recorded"; readonly charge: string; readonly intent: string }
  | { readonly kind: "vanished"; readonly charge: string }
  | { readonly kind: "existed"; readonly charge: string }
  | { readonly kind: "separate"; readonly charges: readonly string[] };

// 48 bits: among a million incidents two ids meet with a chance of 1 in 560.
const ID_DIGITS = 12;

/** The stable id of the one incident of (code, subject). */
export function incidentId(code: string, subject: string): string {
  const hash = createHash("sha256").update(`${code}|${subject}`, "utf8").digest("hex");
  return `inc_${hash.slice(0, ID_DIGITS)}`;
}

/** The status as people should see it: a mute that has run out is no mute. */
export function statusAt(
  incident: Pick<Incident, "status" | "mutedUntil">,
  now: Date,
): IncidentStatus {
  const { status, mutedUntil } = incident;
  return status === "muted" && mutedUntil !== null && mutedUntil <= now ? "open" : status;
}

/** The facts of an incident, to be kept with a person's word about them. */
export function verdictOf(incident: Incident, failedRefunds: readonly string[]): Verdict {
  const { severity, intents, charges, amountAtRisk, currency } = incident;
  return { severity, intents, charges, amountAtRisk, currency, failedRefunds };
}
