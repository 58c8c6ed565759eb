/** A finding: what one detector says in one run about one subject. */
export const CODES = [
  "double_charge",
  "orphan_charge",
  "duplicate_charge_id",
  "fingerprint_conflict",
  "stuck_in_flight",
  "stuck_reconciling",
  "state_drift",
  "amount_mismatch",
  "retry_horizon_exceeded",
  "key_reuse",
  "authorization_reuse",
  "refund_drift",
  "dispute_opened",
  "spend_cap_exceeded",
  "coverage_gap",
  "config_error",
] as const;

export type Code = (typeof CODES)[number];
export type Severity = "info" | "warning" | "critical";

/** Order of severities, for comparisons: a higher number is worse. */
export const SEVERITY_RANK: Readonly<Record<Severity, number>> = {
  info: 0,
  warning: 1,
  critical: 2,
};

export interface Finding {
  readonly code: Code;
  /** Stable identity of the wrong thing; one incident lives per (code, subject). */
  readonly subject: string;
  /** `null`: about a source, not about an operation. */
  readonly operationId: string | null;
  readonly severity: Severity;
  readonly basis: string | null;
  readonly rail: string | null;
  readonly scope: string | null;
  readonly intents: readonly string[];
  readonly charges: readonly string[];
  /** Minor units; `null`: no money is named. */
  readonly amountAtRisk: bigint | null;
  readonly currency: string | null;
  /** When the trouble began at its source; `null`: unknown. */
  readonly occurredAt: Date | null;
  readonly summary: string;
  readonly advice: string;
  /** Small, typed, amounts as strings, no personal data. */
  readonly evidence: Readonly<Record<string, unknown>>;
  /**
   * Absence verdicts name what must be looked at directly right before they are spoken
   * (invariant 2); `null` for positive findings.
   */
  readonly look: Look | null;
}

/** A direct look at a system of record that an absence verdict needs. */
export type Look =
  | {
      readonly source: "local";
      readonly scope: string;
      /** Marks of the charge for which no row may exist. */
      readonly chargeIds: readonly string[];
      readonly keys: readonly string[];
      readonly intentIds: readonly string[];
      readonly references: readonly string[];
      /** Of signed authorizations, in their canonical spelling. */
      readonly nonces: readonly string[];
    }
  | { readonly source: "stripe"; readonly scope: string; readonly id: string }
  | { readonly source: "evm"; readonly scope: string; readonly intent: string };
