/**
 * Rows and transfers on a chain, put into the mirror as their readers would. Used with the world of
 * test/support/world.ts, whose settings must watch the chain (`chainSettings`).
 */
import type { ChainSettings } from "../../src/core/settings.ts";
import { addMs } from "../../src/core/clock.ts";
import type { World } from "./world.ts";

export const CHAIN = "eip155:8453";
export const USDC = `0x${"11".repeat(20)}`;
export const BRIDGED = `0x${"22".repeat(20)}`;
export const PAYER = `0x${"aa".repeat(20)}`;
export const PAYEE = `0x${"bb".repeat(20)}`;

/** A hash of 32 bytes that is easy to tell apart: `hash("t1")`. */
export function hash(name: string): string {
  return `0x${Buffer.from(name).toString("hex").padEnd(64, "0")}`;
}

/** The identity of a charge. */
export function chargeId(tx: string, log: number, scope = CHAIN): string {
  return `${scope}:${hash(tx)}:${String(log)}`;
}

/** A watched chain; endpoints are never asked in these tests. */
export function chainSettings(over: Partial<ChainSettings> = {}): ChainSettings {
  return {
    chainId: CHAIN,
    rpcUrls: ["http://127.0.0.1:1"],
    tokens: [{ address: USDC, symbol: "USDC", decimals: 6 }],
    otherTokens: [{ address: BRIDGED, symbol: "USDbC", decimals: 6 }],
    payers: [PAYER],
    payees: [PAYEE],
    startBlock: 0,
    finality: "safe",
    mpp: null,
    ...over,
  };
}

export interface ChainRow {
  readonly id: string;
  readonly state?: string;
  readonly amount?: number | string;
  readonly tx?: string | null;
  readonly log?: number;
  readonly nonce?: string | null;
  readonly payer?: string | null;
  readonly payee?: string | null;
  readonly asset?: string | null;
  readonly currency?: string;
  readonly paymentId?: string;
  readonly reference?: string;
  readonly kind?: string;
  readonly account?: string;
  readonly validBeforeMs?: number;
  readonly ageMs?: number;
  readonly scope?: string;
}

export interface Transfer {
  readonly tx: string;
  readonly log?: number;
  readonly nonce?: string | null;
  readonly value?: number | string;
  readonly from?: string;
  readonly to?: string;
  readonly token?: string;
  readonly status?: "pending" | "succeeded" | "failed";
  readonly ageMs?: number;
  readonly owned?: "yes" | "unknown";
  readonly purpose?: string;
  readonly scope?: string;
}

const HOUR_MS = 3_600_000;

/** The chain, completely read from ten hours ago until `behindMs` before now. */
export async function chain(
  world: World,
  over: {
    readonly behindMs?: number;
    readonly scope?: string;
    readonly stopped?: string;
    readonly fromBlock?: number;
    /** How long before now the first block that is read was made. */
    readonly sinceMs?: number;
  } = {},
): Promise<void> {
  await world.pool.query(
    `insert into tallyd.evm_chain (scope, genesis_hash, from_block, final_block, final_hash, final_time,
       head_block, head_hash, head_time, stopped_at, stopped_reason)
     values ($1, $2, $7, 1000, $2, $3, 1010, $2, $4, $5, $6)
     on conflict (scope) do update set final_time = excluded.final_time`,
    [
      over.scope ?? CHAIN,
      hash("block"),
      addMs(world.now, -(over.behindMs ?? 0)),
      world.now,
      over.stopped === undefined ? null : world.now,
      over.stopped ?? null,
      over.fromBlock ?? 0,
    ],
  );
  await world.pool.query(
    `insert into tallyd.source (source, scope, covered)
     values ('evm.logs', $1, tstzmultirange(tstzrange($2, $3)))
     on conflict do nothing`,
    [over.scope ?? CHAIN, addMs(world.now, -(over.sinceMs ?? 10 * HOUR_MS)), world.now],
  );
}

/** A row of the team's table, as its reader spells it. */
export async function chainRow(world: World, row: ChainRow): Promise<void> {
  const at = addMs(world.now, -(row.ageMs ?? HOUR_MS));
  const state = row.state ?? "recorded";
  const scope = row.scope ?? CHAIN;
  const tx = row.tx === null || row.tx === undefined ? null : row.tx;
  await world.pool.query(
    `insert into tallyd.intent (intent_id, account_id, rail, scope, kind, amount, currency,
       idempotency_key, state, raw_state, charge_id, reference, payment_id, network, asset, payer, payee,
       nonce, valid_before, created_at, updated_at, row_hash, first_seen_at, seen_at)
     values ($1, $2, 'evm', $3, $4, $5, $6, $7, $8, $8, $9, $10, $11, $3, $12, $13, $14, $15, $16, $17, $17,
       md5(random()::text), $17, $17)
     on conflict (intent_id) do update
       set state = excluded.state, charge_id = excluded.charge_id, nonce = excluded.nonce`,
    [
      row.id,
      row.account ?? "A",
      scope,
      row.kind ?? "charge",
      String(row.amount ?? 10_000),
      row.currency ?? "usdc",
      `key-${row.id}`,
      state,
      tx === null ? null : row.log === undefined ? hash(tx) : chargeId(tx, row.log, scope),
      row.reference ?? null,
      row.paymentId ?? null,
      row.asset === undefined ? USDC : row.asset,
      row.payer === undefined ? PAYER : row.payer,
      row.payee === undefined ? PAYEE : row.payee,
      row.nonce === undefined || row.nonce === null ? null : hash(row.nonce),
      row.validBeforeMs === undefined ? null : addMs(world.now, row.validBeforeMs),
      at,
    ],
  );
  await changed(world, "intent", "", row.id);
}

/** A transfer towards a payee, final unless `status` says otherwise. */
export async function transfer(world: World, one: Transfer): Promise<void> {
  const placed = await insertTransfer(world, one, "charge");
  const { scope, id, at, from, to, token, value, status } = placed;
  const accepted = token === USDC;
  await world.pool.query(
    `insert into tallyd.charge (scope, charge_id, rail, payment_intent, amount, amount_captured, currency,
       status, captured, payer, payee, purpose, owned, failure_code, asset, nonce, created_at, version_at,
       version_rank)
     values ($1, $2, 'evm', $3, $4, $4, $5, $6, true, $7, $8, $9, $10, $11, $12, $13, $14, $14, 1)
     on conflict (scope, charge_id) do update
       set status = excluded.status, failure_code = excluded.failure_code`,
    [
      scope,
      id,
      hash(one.tx),
      value,
      accepted ? "usdc" : "usdbc",
      status,
      from,
      to,
      one.purpose ?? (accepted ? null : "other_token"),
      one.owned ?? (from === PAYER && accepted ? "yes" : "unknown"),
      status === "failed" ? "reorganised" : null,
      token,
      one.nonce === undefined || one.nonce === null ? null : hash(one.nonce),
      at,
    ],
  );
  await changed(world, "charge", scope, id);
}

/** A transfer in the other direction; the payments between the two are placed again. */
export async function transferBack(world: World, one: Transfer): Promise<void> {
  const back = { from: PAYEE, to: PAYER, ...one };
  const { scope, id, at, value } = await insertTransfer(world, back, "refund");
  await world.pool.query(
    `insert into tallyd.refund (scope, refund_id, amount, currency, status, created_at, version_at,
       version_rank)
     values ($1, $2, $3, 'usdc', 'succeeded', $4, $4, 1)`,
    [scope, id, value, at],
  );
  await world.pool.query(
    `insert into tallyd.changed (kind, scope, id)
     select 'charge', scope, charge_id from tallyd.charge where payer = $1 and payee = $2
     on conflict do nothing`,
    [back.to, back.from],
  );
}

/** What became of an authorization, final. */
export async function authorization(
  world: World,
  nonce: string,
  outcome: "used" | "canceled",
): Promise<void> {
  await world.pool.query(
    `insert into tallyd.evm_authorization (scope, token, authorizer, nonce, outcome, tx_hash, log_index,
       block_number, block_hash, block_time, final)
     values ($1, $2, $3, $4, $5, $6, 0, 1, $6, $7, true)`,
    [CHAIN, USDC, PAYER, hash(nonce), outcome, hash(`tx-${nonce}`), addMs(world.now, -HOUR_MS)],
  );
}

/** A transaction that was looked up by its hash. */
export async function transaction(world: World, tx: string, status: string): Promise<void> {
  await world.pool.query(
    `insert into tallyd.evm_transaction (scope, tx_hash, status, block_number, final, looked_at)
     values ($1, $2, $3, 5, true, $4)`,
    [CHAIN, hash(tx), status, world.now],
  );
}

interface PlacedTransfer {
  readonly scope: string;
  readonly id: string;
  readonly at: Date;
  readonly from: string;
  readonly to: string;
  readonly token: string;
  readonly value: string;
  readonly status: string;
}

async function insertTransfer(world: World, one: Transfer, role: string): Promise<PlacedTransfer> {
  const log = one.log ?? 1;
  const placed: PlacedTransfer = {
    scope: one.scope ?? CHAIN,
    id: chargeId(one.tx, log, one.scope),
    at: addMs(world.now, -(one.ageMs ?? HOUR_MS)),
    from: one.from ?? PAYER,
    to: one.to ?? PAYEE,
    token: one.token ?? USDC,
    value: String(one.value ?? 10_000),
    status: one.status ?? "succeeded",
  };
  await world.pool.query(
    `insert into tallyd.evm_transfer (scope, tx_hash, log_index, block_number, block_hash, block_time, token,
       sender, recipient, value, nonce, role, final, gone_at)
     values ($1, $2, $3, 1, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
     on conflict do nothing`,
    [
      placed.scope,
      hash(one.tx),
      log,
      hash("block"),
      placed.at,
      placed.token,
      placed.from,
      placed.to,
      placed.value,
      one.nonce === undefined || one.nonce === null ? null : hash(one.nonce),
      role,
      placed.status !== "pending",
      placed.status === "failed" ? world.now : null,
    ],
  );
  return placed;
}

async function changed(world: World, kind: string, scope: string, id: string): Promise<void> {
  await world.pool.query(
    "insert into tallyd.changed (kind, scope, id) values ($1, $2, $3) on conflict do nothing",
    [kind, scope, id],
  );
}
