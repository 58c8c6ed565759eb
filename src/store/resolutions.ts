/** The only writer of `tallyd.resolution`: decisions about ambiguous rows, append-only. */
import type { Db } from "./pool.ts";

/** What became of a decision. */
export type ResolutionOutcome = "applied" | "suggested" | "none" | "lost_race" | "refused";

/** A decision with its proof, as it is stored. */
export interface Resolution {
  readonly intentId: string;
  /** `null`: the row was in no operation yet. */
  readonly operationId: string | null;
  /** recorded, failed_retryable, failed_terminal, wait, hold, unproven. */
  readonly decision: string;
  readonly reason: string;
  readonly fromState: string;
  /** `null`: no write was decided. */
  readonly toState: string | null;
  readonly chargeId: string | null;
  readonly outcome: ResolutionOutcome;
  readonly proof: Readonly<Record<string, unknown>>;
  readonly contract: Readonly<Record<string, unknown>>;
  readonly decidedAt: Date;
}

/** A stored resolution. */
export interface StoredResolution extends Resolution {
  readonly resolutionId: bigint;
}

// The length that the table allows; a longer reason loses its end, not the decision.
const REASON_CHARS_MAX = 4_000;

/**
 * Adds a resolution. With `onlyNews` a repeat of the row's last one is left out: same decision,
 * outcome, states, charge and reason. Answers whether it was added.
 */
export async function addResolution(
  db: Db,
  resolution: Resolution,
  input: { readonly onlyNews: boolean },
): Promise<boolean> {
  const added = await db.query(
    `with last as (
       select r.decision, r.outcome, r.from_state, r.to_state, r.charge_id, r.reason
         from tallyd.resolution r
        where r.intent_id = $1
        order by r.resolution_id desc
        limit 1
     )
     insert into tallyd.resolution
       (intent_id, operation_id, decision, reason, from_state, to_state, charge_id, outcome,
        proof, contract, decided_at)
     select $1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb, $10::jsonb, $11
      where not $12::boolean
         or not exists (
              select
                from last
               where (decision, outcome, from_state, to_state, charge_id, reason)
                     is not distinct from
                     ($3::text, $8::text, $5::text, $6::text, $7::text, $4::text)
            )`,
    [
      resolution.intentId,
      resolution.operationId,
      resolution.decision,
      resolution.reason.slice(0, REASON_CHARS_MAX),
      resolution.fromState,
      resolution.toState,
      resolution.chargeId,
      resolution.outcome,
      JSON.stringify(resolution.proof),
      JSON.stringify(resolution.contract),
      resolution.decidedAt,
      input.onlyNews,
    ],
  );
  return added.rowCount === 1;
}

/** The newest resolutions of some rows, newest first. */
export async function resolutionsOf(
  db: Db,
  input: { readonly intentIds: readonly string[]; readonly limit: number },
): Promise<StoredResolution[]> {
  const found = await db.query<ResolutionRow>(
    `select r.resolution_id, r.intent_id, r.operation_id, r.decision, r.reason, r.from_state,
            r.to_state, r.charge_id, r.outcome, r.proof, r.contract, r.decided_at
       from tallyd.resolution r
      where r.intent_id = any ($1::text[])
      order by r.resolution_id desc
      limit $2`,
    [input.intentIds, input.limit],
  );
  return found.rows.map((row) => ({
    resolutionId: row.resolution_id,
    intentId: row.intent_id,
    operationId: row.operation_id,
    decision: row.decision,
    reason: row.reason,
    fromState: row.from_state,
    toState: row.to_state,
    chargeId: row.charge_id,
    outcome: row.outcome,
    proof: row.proof,
    contract: row.contract,
    decidedAt: row.decided_at,
  }));
}

interface ResolutionRow {
  readonly resolution_id: bigint;
  readonly intent_id: string;
  readonly operation_id: string | null;
  readonly decision: string;
  readonly reason: string;
  readonly from_state: string;
  readonly to_state: string | null;
  readonly charge_id: string | null;
  readonly outcome: ResolutionOutcome;
  readonly proof: Readonly<Record<string, unknown>>;
  readonly contract: Readonly<Record<string, unknown>>;
  readonly decided_at: Date;
}
