/** Reads the situation of an ambiguous row from the mirror; no source is asked here. */
import type { IntentState } from "../core/states.ts";
import { isIntentState } from "../core/states.ts";
import { invariant } from "../core/errors.ts";
import { readNamedSql, runNamed } from "../store/named-sql.ts";
import { toBigint } from "../store/pool.ts";
import type { Db } from "../store/pool.ts";
import { missingRanges } from "../store/sources.ts";
import { readOwnCharges } from "./own-charges.ts";
import { ABSENCE_SOURCES, attemptRange } from "./absence.ts";
import type { ProofRules } from "./absence.ts";
import type {
  AbsenceFacts,
  Gap,
  LastLook,
  OpenIntent,
  OwnPayment,
  RivalRow,
  SiblingCharge,
  Situation,
} from "./situation.ts";

const sql = {
  intent: readNamedSql("resolve/intent.sql"),
  payments: readNamedSql("resolve/own_payments.sql"),
  siblings: readNamedSql("resolve/siblings.sql"),
  sharedKeys: readNamedSql("resolve/shared_keys.sql"),
  rivals: readNamedSql("resolve/rivals.sql"),
  marked: readNamedSql("resolve/marked_objects.sql"),
  objects: readNamedSql("resolve/objects_of_the_time.sql"),
};

/** Ids that a proof or a message names: enough to look at, few enough to read. */
export const NAMED_MAX = 10;

/** What reading a situation needs besides the row. */
export interface SituationInput {
  readonly intentId: string;
  readonly rules: ProofRules;
  /** False: the table has no time of change. */
  readonly touchKnown: boolean;
  /** The direct look of this pass; `null`: none was made. */
  readonly look: LastLook | null;
}

/** The row as the mirror has it; `null`: it is gone, or it is no payment. */
export async function readOpenIntent(
  db: Db,
  input: { readonly intentId: string; readonly touchKnown: boolean },
): Promise<OpenIntent | null> {
  const rows = await runNamed<IntentRecord>(db, sql.intent, { intent: input.intentId });
  const row = rows[0];
  if (row === undefined) return null;
  invariant(isIntentState(row.state), `${row.intent_id} has the state ${row.state}`);
  return {
    intentId: row.intent_id,
    accountId: row.account_id,
    scope: row.scope,
    operationId: row.operation_id,
    amount: toBigint(row.amount),
    currency: row.currency,
    idempotencyKey: row.idempotency_key,
    state: row.state,
    chargeId: row.charge_id,
    fingerprint: row.fingerprint,
    reference: row.reference,
    payee: row.payee,
    asset: row.asset,
    repeatConfirmed: row.repeat_confirmed,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    touchKnown: input.touchKnown,
  };
}

/** Everything that the decision about a row may rest on; `null`: there is no such row. */
export async function readSituation(db: Db, input: SituationInput): Promise<Situation | null> {
  const intent = await readOpenIntent(db, input);
  if (intent === null) return null;
  const { operationId } = intent;
  const operation = operationId === null ? null : { operation: operationId, limit: NAMED_MAX };
  return {
    intent,
    payments: await readOwnPayments(db, intent, input.rules),
    charges: await readOwnCharges(db, intent.intentId),
    siblings: operation === null ? [] : await readSiblings(db, intent.intentId, operation),
    rivals: await readRivals(db, intent.intentId),
    sharedKeys: operation === null ? [] : await readSharedKeys(db, operation),
    absence: await readAbsence(db, intent, input),
  };
}

/** The payment intents of a row. */
export async function readOwnPayments(
  db: Db,
  intent: OpenIntent,
  rules: ProofRules,
): Promise<OwnPayment[]> {
  const rows = await runNamed<PaymentRecord>(db, sql.payments, {
    intent: intent.intentId,
    scope: intent.scope,
    key: intent.idempotencyKey,
    ...attemptRange(intent, rules),
  });
  return rows.map((row) => ({
    id: row.id,
    status: row.status,
    amount: toBigint(row.amount),
    currency: row.currency,
    failureCode: row.failure_code,
    cancellationReason: row.cancellation_reason,
    basis: row.basis,
    createdAt: row.created_at,
    versionAt: row.version_at,
    seenAt: row.seen_at,
    missingSince: row.missing_since,
  }));
}

/** Successes of the operation that are not the row's own. */
export async function readSiblings(
  db: Db,
  intent: string,
  operation: { readonly operation: string; readonly limit: number },
): Promise<SiblingCharge[]> {
  const rows = await runNamed<SiblingRecord>(db, sql.siblings, { intent, ...operation });
  return rows.map((row) => ({
    chargeId: row.charge_id,
    intentId: row.intent_id,
    net: toBigint(row.net),
    currency: row.currency,
    createdAt: row.created_at,
  }));
}

async function readSharedKeys(
  db: Db,
  operation: { readonly operation: string; readonly limit: number },
): Promise<string[]> {
  const rows = await runNamed<{ idempotency_key: string }>(db, sql.sharedKeys, operation);
  return rows.map((row) => row.idempotency_key);
}

/** Other rows with the same key or payment id that mean something else. */
export async function readRivals(db: Db, intent: string): Promise<RivalRow[]> {
  const rows = await runNamed<RivalRecord>(db, sql.rivals, { intent, limit: NAMED_MAX });
  return rows.map((row) => ({
    intentId: row.intent_id,
    mark: row.mark,
    amount: toBigint(row.amount),
    currency: row.currency,
    payee: row.payee,
  }));
}

async function readAbsence(
  db: Db,
  intent: OpenIntent,
  input: SituationInput,
): Promise<AbsenceFacts> {
  const { rules, look } = input;
  const { scope, idempotencyKey: key } = intent;
  const range = attemptRange(intent, rules);
  const gaps: Gap[] = [];
  for (const source of ABSENCE_SOURCES) {
    const missing = await missingRanges(db, { source, scope, ...range });
    gaps.push(...missing.map((gap) => ({ source, ...gap })));
  }
  const marked = await runNamed<{ id: string }>(db, sql.marked, {
    intent: intent.intentId,
    scope,
    key,
    charge: intent.chargeId,
    reference: intent.reference,
    limit: NAMED_MAX,
    ...range,
  });
  const [objects] = await runNamed<ObjectsRecord>(db, sql.objects, {
    scope,
    key,
    limit: NAMED_MAX,
    ...range,
  });
  invariant(objects !== undefined, "an aggregate without group by always gives one row");
  return {
    gaps,
    marked: marked.map((row) => row.id),
    owned: Number(objects.owned),
    withMetadata: Number(objects.with_metadata),
    withKey: Number(objects.with_key),
    unmarked: objects.sample,
    unmarkedTotal: Number(objects.unmarked),
    look,
  };
}

interface IntentRecord {
  readonly intent_id: string;
  readonly account_id: string;
  readonly scope: string;
  readonly operation_id: string | null;
  readonly amount: string;
  readonly currency: string;
  readonly idempotency_key: string | null;
  readonly state: IntentState;
  readonly charge_id: string | null;
  readonly fingerprint: string | null;
  readonly reference: string | null;
  readonly payee: string | null;
  readonly asset: string | null;
  readonly repeat_confirmed: boolean;
  readonly created_at: Date;
  readonly updated_at: Date;
}

interface PaymentRecord {
  readonly id: string;
  readonly status: string;
  readonly amount: string;
  readonly currency: string;
  readonly failure_code: string | null;
  readonly cancellation_reason: string | null;
  readonly basis: string;
  readonly created_at: Date;
  readonly version_at: Date;
  readonly seen_at: Date;
  readonly missing_since: Date | null;
}

interface SiblingRecord {
  readonly charge_id: string;
  readonly intent_id: string | null;
  readonly net: string;
  readonly currency: string;
  readonly created_at: Date;
}

interface RivalRecord {
  readonly intent_id: string;
  readonly mark: "key" | "payment_id";
  readonly amount: string;
  readonly currency: string;
  readonly payee: string | null;
}

interface ObjectsRecord {
  readonly owned: bigint;
  readonly with_metadata: bigint;
  readonly with_key: bigint;
  readonly unmarked: bigint;
  readonly sample: string[];
}
