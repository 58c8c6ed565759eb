/** From what was seen at the provider to the row, and to what the caller is told. */
import { LedgerError } from "./errors.ts";
import type { JsonObject } from "./errors.ts";
import type { Db, LedgerIntent, TableDeps } from "./intent.ts";
import type { Limits } from "./limits.ts";
import { lookUp } from "./look.ts";
import type { Look } from "./look.ts";
import type { Outcome } from "./outcome.ts";
import { metadataKeyOf } from "./stripe-call.ts";
import type { CallDeps } from "./stripe-call.ts";
import { field, textField } from "./stripe-client.ts";
import type { StripeObject } from "./stripe-client.ts";
import { moveIntent, readIntent, recordAnyway } from "./table.ts";
import { responseOf, verdictOf } from "./verdict.ts";
import type { Verdict } from "./verdict.ts";

/** Points between two steps at which a process may die; see {@link ExecuteDeps.onStep}. */
export type StepName = "read" | "admitted" | "answered" | "doubted" | "looked" | "stored";

/** What a payment by Stripe needs. */
export interface ExecuteDeps extends TableDeps, CallDeps {
  /** A pool: every mark is committed on its own, before the next step. */
  readonly db: Db;
  readonly limits?: Partial<Limits>;
  /** Called after each step, for traces and for tests of what a crash there leaves behind. */
  readonly onStep?: (step: StepName, intentId: string) => void | Promise<void>;
}

/** A payment that happened. */
export interface Payment {
  readonly intentId: string;
  readonly state: "recorded";
  /** The provider's object (`pi_…`, `re_…`). */
  readonly chargeId: string | null;
  /** What was stored of its answer; every later call gets the same. */
  readonly response: JsonObject;
  /** True: it was recorded before this call. */
  readonly replayed: boolean;
}

/** What one turn of the state machine came to; everything else is thrown. */
export type Step =
  | { readonly kind: "paid"; readonly payment: Payment }
  /** The row has changed: read it again. */
  | { readonly kind: "again" }
  /** Another worker holds it. */
  | { readonly kind: "held" };

/** The stored answer of a recorded intent. */
export function replay(intent: LedgerIntent): Payment {
  const { intentId } = intent;
  const response = intent.response ?? {};
  const chargeId = intent.chargeId ?? textField(response, "id");
  return { intentId, state: "recorded", chargeId, response, replayed: true };
}

/** The final failure of an intent, with what is stored about it. */
export function refuse(
  intentId: string,
  response: JsonObject | null,
  reason: string,
  cause?: unknown,
): LedgerError {
  const said = textField(field(response, "error"), "message") ?? reason;
  return new LedgerError("failed", `${intentId} was not paid: ${said}`, {
    intentId,
    response,
    cause,
  });
}

/** Settles the row that this worker holds by how its call ended. */
export async function conclude(
  deps: ExecuteDeps,
  held: LedgerIntent,
  outcome: Outcome,
  limits: Limits,
): Promise<Step> {
  const { intentId } = held;
  switch (outcome.kind) {
    case "answered":
      return settle(deps, held, verdictOf(held, outcome.object));
    case "refused":
      return failFor(deps, held, outcome.response, outcome.reason);
    case "not_run":
      if ((await moveIntent(deps, held, { to: "failed_retryable" })) === null) {
        return { kind: "again" };
      }
      throw new LedgerError("retryable", `${intentId}: nothing ran: ${outcome.reason}`, {
        intentId,
        retryAfterMs: outcome.retryAfterMs,
        cause: outcome.cause,
      });
    case "unknown":
      return doubt(deps, held, outcome, limits);
  }
}

/** Marks the row, then looks once: what was lost on the way back is mostly there already. */
async function doubt(
  deps: ExecuteDeps,
  held: LedgerIntent,
  outcome: Outcome & { readonly kind: "unknown" },
  limits: Limits,
): Promise<Step> {
  const { intentId } = held;
  const doubted = await moveIntent(deps, held, { to: "reconciling" });
  if (doubted === null) return { kind: "again" };
  await deps.onStep?.("doubted", intentId);
  const look = await lookUp(deps, doubted, rangeOf(doubted, limits)).catch(() => null);
  await deps.onStep?.("looked", intentId);
  if (look?.kind === "done" || look?.kind === "open" || look?.kind === "differs") {
    return settle(deps, doubted, look);
  }
  if (look?.kind === "several") throw several(intentId, look);
  // The endpoint ran and said no, and there is nothing of an earlier request.
  if (look?.kind === "absent" && look.complete && outcome.refusal !== null) {
    return failFor(deps, doubted, outcome.refusal, outcome.reason);
  }
  throw new LedgerError(
    "unknown",
    `${intentId}: the outcome is not known (${outcome.reason}); it will be looked up`,
    { intentId, retryAfterMs: limits.settleMs, cause: outcome.cause },
  );
}

/**
 * The object that the row claims. A capture claims none: its payment is the charge's, and two rows
 * that claim one payment look like a double booking where the table does not tell kinds apart.
 */
function claimOf(intent: LedgerIntent, object: StripeObject): string | null {
  return intent.operation === "capture" ? null : object.id;
}

/** Every moment at which an object of the intent may have been made, in Unix seconds. */
export function rangeOf(
  intent: LedgerIntent,
  limits: Limits,
): { readonly from: number; readonly to: number } {
  const slack = limits.clockSlackMs / 1_000;
  const last = Number(intent.version) + limits.settleMs / 1_000;
  return { from: intent.createdAt - slack, to: last + slack };
}

/** Settles the row by what an object of its own means. */
export async function settle(
  deps: ExecuteDeps,
  intent: LedgerIntent,
  verdict: Verdict,
): Promise<Step> {
  const { intentId } = intent;
  const { object } = verdict;
  switch (verdict.kind) {
    case "done":
      return { kind: "paid", payment: await record(deps, intent, object) };
    case "open": {
      const response = responseOf(object, metadataKeyOf(deps));
      const chargeId = claimOf(intent, object);
      const change = { to: "in_flight", chargeId, response } as const;
      if (intent.chargeId !== chargeId || intent.state !== "in_flight") {
        if ((await moveIntent(deps, intent, change)) === null) return { kind: "again" };
      }
      throw new LedgerError("pending", `${intentId}: ${object.id} is ${verdict.status}`, {
        intentId,
        response,
      });
    }
    case "dead": {
      const { status } = verdict;
      const error = { type: "payment_error", code: status, object: object.id };
      return failFor(deps, intent, { error }, `${object.id} is ${status}`);
    }
    case "differs":
      if (intent.state === "in_flight") await moveIntent(deps, intent, { to: "reconciling" });
      throw new LedgerError(
        "conflict",
        `${intentId} says ${intent.amount} ${intent.currency}, and ${object.id} is about ` +
          `${verdict.seen}: a person has to look`,
        { intentId },
      );
  }
}

/** More objects than one that moved money: which of them counts is for a person to say. */
export function several(intentId: string, look: Look & { readonly kind: "several" }): LedgerError {
  const ids = look.ids.join(", ");
  return new LedgerError("conflict", `${intentId} has ${look.ids.length} payments: ${ids}`, {
    intentId,
  });
}

/** Ends the row as failed for good, and says so. */
export async function failFor(
  deps: ExecuteDeps,
  intent: LedgerIntent,
  response: JsonObject,
  reason: string,
): Promise<Step> {
  const failed = await moveIntent(deps, intent, { to: "failed_terminal", response });
  if (failed === null) return { kind: "again" };
  await deps.onStep?.("stored", intent.intentId);
  throw refuse(intent.intentId, response, reason);
}

async function record(
  deps: ExecuteDeps,
  intent: LedgerIntent,
  object: StripeObject,
): Promise<Payment> {
  const { intentId } = intent;
  const response = responseOf(object, metadataKeyOf(deps));
  const change = { to: "recorded", chargeId: claimOf(intent, object), response } as const;
  const moved =
    (await moveIntent(deps, intent, change)) ?? (await recordAnyway(deps, intent, change));
  if (moved !== null) {
    await deps.onStep?.("stored", intentId);
    return { ...replay(moved), replayed: false };
  }
  const row = await readIntent(deps, intentId);
  const ids = [object.id, textField(object, "latest_charge")];
  if (row.state === "recorded" && ids.includes(replay(row).chargeId)) return replay(row);
  throw new LedgerError(
    "conflict",
    `${object.id} paid for ${intentId}, whose row is ${row.state} (${row.chargeId ?? "nothing"})`,
    { intentId },
  );
}
