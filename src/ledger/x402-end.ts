/** The ends of a payment over x402. */
import { refuse, replay } from "./conclude.ts";
import type { Payment, Step } from "./conclude.ts";
import { LedgerError } from "./errors.ts";
import type { JsonObject } from "./errors.ts";
import type { LedgerIntent } from "./intent.ts";
import { moveIntent, readIntent, recordAnyway } from "./table.ts";
import type { RowDeps } from "./table.ts";

/** Points between two steps at which a process may die; see `X402Deps.onStep`. */
export type X402StepName =
  "read" | "asked" | "admitted" | "signed" | "answered" | "doubted" | "looked" | "stored";

/** What an end needs. */
export interface EndDeps extends RowDeps {
  readonly onStep?: (step: X402StepName, intentId: string) => void | Promise<void>;
}

/** Records the payment by its transaction, whatever others made of the row in the meantime. */
export async function record(
  deps: EndDeps,
  intent: LedgerIntent,
  transaction: string,
  goods: JsonObject | null,
): Promise<Payment> {
  const response = { success: true, transaction, http: goods };
  const change = { to: "recorded", chargeId: transaction, response } as const;
  const moved =
    (await moveIntent(deps, intent, change)) ?? (await recordAnyway(deps, intent, change));
  if (moved !== null) {
    await deps.onStep?.("stored", intent.intentId);
    return { ...replay(moved), replayed: false };
  }
  const row = await readIntent(deps, intent.intentId);
  if (row.state === "recorded") return replay(row);
  throw new LedgerError(
    "conflict",
    `${transaction} paid for ${intent.intentId}, whose row is ${row.state}`,
    { intentId: intent.intentId },
  );
}

/** Ends the row: the payer took the authorization back. */
export function canceled(deps: EndDeps, intent: LedgerIntent): Promise<Step> {
  return failFor(deps, intent, "canceled", "its authorization was canceled on chain");
}

/** Ends the row as failed for good, and says so. */
export async function failFor(
  deps: EndDeps,
  intent: LedgerIntent,
  code: string,
  message: string,
): Promise<Step> {
  const response = { error: { type: "authorization_error", code, message } };
  const failed = await moveIntent(deps, intent, { to: "failed_terminal", response });
  if (failed === null) return { kind: "again" };
  await deps.onStep?.("stored", intent.intentId);
  throw refuse(intent.intentId, response, message);
}

// A wallet that is locked, or a signing service that is down, takes a person or a moment.
const SIGN_AGAIN_MS = 5_000;

/** What could not be signed cannot be settled: the row is free at once. */
export async function unsigned(deps: EndDeps, held: LedgerIntent, error: unknown): Promise<never> {
  const { intentId } = held;
  await moveIntent(deps, held, { to: "failed_retryable" });
  const message = error instanceof Error ? error.message : String(error);
  const options = { intentId, retryAfterMs: SIGN_AGAIN_MS, cause: error };
  throw new LedgerError("retryable", `${intentId} could not be signed: ${message}`, options);
}
