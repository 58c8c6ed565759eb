import type { IntentRow, RowFault } from "../core/intent.ts";
import type { Db } from "./pool.ts";

/** What a page of rows did to the mirror. */
export interface UpsertResult {
  /** Ids of rows that are new, differ from before, or came back. */
  readonly changed: readonly string[];
}

/** Rows as they were at one snapshot of the team's table. */
export interface RowsAt {
  readonly rows: readonly IntentRow[];
  /** ISO 8601: an older snapshot never overwrites a newer one. */
  readonly snapshotAt: string;
}

// `recorded_as` keeps what the row said when it was first seen recorded: a later difference is
// tampering, or a writer that reuses rows (invariant 4).
const UPSERT = `
with read as (
  select r.*
    from jsonb_to_recordset($1::jsonb) as r (
           intent_id text, account_id text, rail text, scope text, kind text,
           amount numeric(78,0), currency text, idempotency_key text, state text, raw_state text,
           charge_id text, response_kind text, fingerprint text, fingerprint_fit text,
           reference text, payment_id text, customer text, network text, asset text,
           payer text, payee text, nonce text, valid_before timestamptz,
           challenge_nonce text, challenge_memo text,
           repeat_confirmed boolean, created_at timestamptz, updated_at timestamptz,
           row_hash text)
),
-- Unchanged rows are left out here: even a no-op update would lock and log them.
differing as (
  select r.*,
         case when r.state = 'recorded' then jsonb_build_object(
           'amount', r.amount::text,
           'currency', r.currency,
           'account_id', r.account_id,
           'payee', r.payee,
           'asset', r.asset,
           'charge_id', r.charge_id) end as recorded_as,
         case when r.state = 'recorded' then $2::timestamptz end as recorded_seen_at
    from read r
    left join tallyd.intent i on i.intent_id = r.intent_id
   where i.intent_id is null
      or i.row_hash <> r.row_hash
      or i.vanished_at is not null
),
stored as (
  insert into tallyd.intent as i (
           intent_id, account_id, rail, scope, kind, amount, currency, idempotency_key, state,
           raw_state, charge_id, response_kind, fingerprint, fingerprint_fit, reference,
           payment_id, customer, network, asset, payer, payee, nonce, valid_before,
           challenge_nonce, challenge_memo,
           repeat_confirmed, created_at, updated_at, row_hash, recorded_as, recorded_seen_at,
           first_seen_at, seen_at)
  select d.intent_id, d.account_id, d.rail, d.scope, d.kind, d.amount, d.currency,
         d.idempotency_key, d.state, d.raw_state, d.charge_id, d.response_kind, d.fingerprint,
         d.fingerprint_fit, d.reference, d.payment_id, d.customer, d.network, d.asset, d.payer,
         d.payee, d.nonce, d.valid_before, d.challenge_nonce, d.challenge_memo, d.repeat_confirmed, d.created_at, d.updated_at,
         d.row_hash, d.recorded_as, d.recorded_seen_at, $2, $2
    from differing d
   order by d.intent_id
  on conflict (intent_id) do update
     set account_id = excluded.account_id,
         rail = excluded.rail,
         scope = excluded.scope,
         kind = excluded.kind,
         amount = excluded.amount,
         currency = excluded.currency,
         idempotency_key = excluded.idempotency_key,
         state = excluded.state,
         raw_state = excluded.raw_state,
         charge_id = excluded.charge_id,
         response_kind = excluded.response_kind,
         fingerprint = excluded.fingerprint,
         fingerprint_fit = excluded.fingerprint_fit,
         reference = excluded.reference,
         payment_id = excluded.payment_id,
         customer = excluded.customer,
         network = excluded.network,
         asset = excluded.asset,
         payer = excluded.payer,
         payee = excluded.payee,
         nonce = excluded.nonce,
         valid_before = excluded.valid_before,
         challenge_nonce = excluded.challenge_nonce,
         challenge_memo = excluded.challenge_memo,
         repeat_confirmed = excluded.repeat_confirmed,
         created_at = excluded.created_at,
         updated_at = excluded.updated_at,
         row_hash = excluded.row_hash,
         recorded_as = coalesce(i.recorded_as, excluded.recorded_as),
         recorded_seen_at = coalesce(i.recorded_seen_at, excluded.recorded_seen_at),
         seen_at = excluded.seen_at,
         vanished_at = null
   -- A page is stored within seconds, so a larger step back is a clock that was set: read anew.
   where i.seen_at <= excluded.seen_at
      or i.seen_at > excluded.seen_at + interval '5 minutes'
  returning i.intent_id
),
touched as (
  insert into tallyd.changed (kind, id)
  select 'intent', s.intent_id
    from stored s
   order by s.intent_id
  on conflict (kind, scope, id) do update
     set at = excluded.at
)
select s.intent_id
  from stored s`;

/**
 * Stores rows of the team's table; only those that differ are written and handed to matching.
 * Call it in one transaction with the progress of the read.
 */
export async function upsertIntents(tx: Db, page: RowsAt): Promise<UpsertResult> {
  if (page.rows.length === 0) return { changed: [] };
  const done = await tx.query<{ intent_id: string }>(UPSERT, [
    JSON.stringify(page.rows.map(toRecord)),
    page.snapshotAt,
  ]);
  return { changed: done.rows.map((row) => row.intent_id) };
}

function toRecord(row: IntentRow): Record<string, unknown> {
  return {
    intent_id: row.intentId,
    account_id: row.accountId,
    rail: row.rail,
    scope: row.scope,
    kind: row.kind,
    amount: String(row.amount),
    currency: row.currency,
    idempotency_key: row.idempotencyKey,
    state: row.state,
    raw_state: row.rawState,
    charge_id: row.chargeId,
    response_kind: row.responseKind,
    fingerprint: row.fingerprint,
    fingerprint_fit: row.fingerprintFit,
    reference: row.reference,
    payment_id: row.paymentId,
    customer: row.customer,
    network: row.network,
    asset: row.asset,
    payer: row.payer,
    payee: row.payee,
    nonce: row.nonce,
    valid_before: row.validBefore,
    challenge_nonce: row.challengeNonce,
    challenge_memo: row.challengeMemo,
    repeat_confirmed: row.repeatConfirmed,
    created_at: row.createdAt,
    updated_at: row.updatedAt,
    row_hash: row.rowHash,
  };
}

/** Notes that rows are gone from the team's table; returns the ids that were still there for us. */
export async function markVanished(
  tx: Db,
  input: { readonly ids: readonly string[]; readonly at: string },
): Promise<string[]> {
  if (input.ids.length === 0) return [];
  const done = await tx.query<{ intent_id: string }>(
    `with gone as (
       update tallyd.intent i
          set vanished_at = $2,
              seen_at = $2
        where i.intent_id = any($1)
          and i.vanished_at is null
          and (i.seen_at <= $2 or i.seen_at > $2::timestamptz + interval '5 minutes')
       returning i.intent_id
     ),
     touched as (
       insert into tallyd.changed (kind, id)
       select 'intent', g.intent_id
         from gone g
       on conflict (kind, scope, id) do update
          set at = excluded.at
     )
     select g.intent_id
       from gone g`,
    [input.ids, input.at],
  );
  return done.rows.map((row) => row.intent_id);
}

/** Rows of the mirror that still exist, as far as it knows. */
export async function countIntents(db: Db): Promise<bigint> {
  const found = await db.query<{ total: bigint }>(
    "select count(*) as total from tallyd.intent where vanished_at is null",
  );
  return found.rows[0]?.total ?? 0n;
}

/** Ids of existing rows in order, after `afterId`; for the search of rows that are gone. */
export async function listIntentIds(
  db: Db,
  input: { readonly afterId: string | null; readonly limit: number },
): Promise<string[]> {
  const found = await db.query<{ intent_id: string }>(
    `select i.intent_id
       from tallyd.intent i
      where i.vanished_at is null
        and ($1::text is null or i.intent_id > $1)
      order by i.intent_id
      limit $2`,
    [input.afterId, input.limit],
  );
  return found.rows.map((row) => row.intent_id);
}

/** Forgets faults that a sweep begun at `before` (ISO 8601) did not meet again. */
export async function dropStaleFaults(tx: Db, before: string): Promise<void> {
  await tx.query("delete from tallyd.intent_fault where at < $1", [before]);
}

/** Replaces what is noted about the faults of the rows that were just read. */
export async function saveFaults(
  tx: Db,
  input: {
    readonly ids: readonly string[];
    readonly faults: readonly RowFault[];
    readonly at: string;
  },
): Promise<void> {
  const named = new Map<string, RowFault>();
  for (const fault of input.faults) if (fault.intentId !== null) named.set(fault.intentId, fault);
  const healed = input.ids.filter((id) => !named.has(id));
  await tx.query("delete from tallyd.intent_fault where intent_id = any($1)", [healed]);
  if (named.size === 0) return;
  const records = [...named].map(([intent_id, { kept, faults }]) => ({ intent_id, kept, faults }));
  await tx.query(
    `insert into tallyd.intent_fault as f (intent_id, kept, faults, first_at, at)
     select r.intent_id, r.kept, r.faults, $2, $2
       from jsonb_to_recordset($1::jsonb) as r (intent_id text, kept boolean, faults jsonb)
      order by r.intent_id
     on conflict (intent_id) do update
        set kept = excluded.kept,
            faults = excluded.faults,
            at = excluded.at`,
    [JSON.stringify(records), input.at],
  );
}

/** A row of the team's table that is set aside, or kept with a remark. */
export interface StoredFault extends RowFault {
  readonly intentId: string;
  readonly firstAt: Date;
}

/** Faulty rows, oldest fault first, for findings and `doctor`. */
export async function listFaults(
  db: Db,
  input: { readonly limit: number },
): Promise<StoredFault[]> {
  const found = await db.query<{
    intent_id: string;
    kept: boolean;
    faults: RowFault["faults"];
    first_at: Date;
  }>(
    `select f.intent_id, f.kept, f.faults, f.first_at
       from tallyd.intent_fault f
      order by f.first_at, f.intent_id
      limit $1`,
    [input.limit],
  );
  return found.rows.map((row) => ({
    intentId: row.intent_id,
    kept: row.kept,
    faults: row.faults,
    firstAt: row.first_at,
  }));
}
