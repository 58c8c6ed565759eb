/** The only writer of `tallyd.evm_chain` and `tallyd.evm_endpoint`. */
import type { Db } from "./pool.ts";

/** A block by number, hash and time. */
export interface BlockRef {
  readonly number: number;
  readonly hash: string;
  readonly time: Date;
}

/** How far a chain is read. */
export interface ChainRow {
  readonly scope: string;
  readonly genesisHash: string | null;
  /** First block that is read. */
  readonly fromBlock: number | null;
  /** The newest one that is completely read; at or below finality. */
  readonly final: BlockRef | null;
  readonly head: BlockRef | null;
  readonly reorganised: number;
  readonly stoppedAt: Date | null;
  readonly stoppedReason: string | null;
}

interface Row {
  readonly scope: string;
  readonly genesis_hash: string | null;
  readonly from_block: bigint | null;
  readonly final_block: bigint | null;
  readonly final_hash: string | null;
  readonly final_time: Date | null;
  readonly head_block: bigint | null;
  readonly head_hash: string | null;
  readonly head_time: Date | null;
  readonly reorganised: bigint;
  readonly stopped_at: Date | null;
  readonly stopped_reason: string | null;
}

function blockOf(number: bigint | null, hash: string | null, time: Date | null): BlockRef | null {
  if (number === null || hash === null || time === null) return null;
  return { number: Number(number), hash, time };
}

/** Reads a chain; an empty one when it was never read. */
export async function getChain(db: Db, scope: string): Promise<ChainRow> {
  const found = await db.query<Row>(
    `select scope, genesis_hash, from_block, final_block, final_hash, final_time, head_block, head_hash,
            head_time, reorganised, stopped_at, stopped_reason
       from tallyd.evm_chain
      where scope = $1`,
    [scope],
  );
  const row = found.rows[0];
  return {
    scope,
    genesisHash: row?.genesis_hash ?? null,
    fromBlock: row?.from_block === null || row === undefined ? null : Number(row.from_block),
    final: row === undefined ? null : blockOf(row.final_block, row.final_hash, row.final_time),
    head: row === undefined ? null : blockOf(row.head_block, row.head_hash, row.head_time),
    reorganised: Number(row?.reorganised ?? 0n),
    stoppedAt: row?.stopped_at ?? null,
    stoppedReason: row?.stopped_reason ?? null,
  };
}

/** Notes the first block of a chain, once: another one later is another chain. */
export async function saveGenesis(db: Db, scope: string, hash: string): Promise<void> {
  await db.query(
    `insert into tallyd.evm_chain as e (scope, genesis_hash)
     values ($1, $2)
     on conflict (scope) do update
       set genesis_hash = coalesce(e.genesis_hash, excluded.genesis_hash)`,
    [scope, hash],
  );
}

/** Moves the ends of what is read. Only in the transaction that stored it (invariant 10). */
export async function saveRead(
  tx: Db,
  read: { readonly scope: string; readonly fromBlock: number; readonly final: BlockRef | null },
): Promise<void> {
  await tx.query(
    `update tallyd.evm_chain
        set from_block = least(from_block, $2),
            final_block = coalesce($3, final_block),
            final_hash = coalesce($4, final_hash),
            final_time = coalesce($5, final_time)
      where scope = $1`,
    [
      read.scope,
      read.fromBlock,
      read.final?.number ?? null,
      read.final?.hash ?? null,
      read.final?.time ?? null,
    ],
  );
}

/** Notes the newest block that was seen; `reorganised`: the former one is on the chain no more. */
export async function saveHead(
  tx: Db,
  seen: {
    readonly scope: string;
    readonly head: BlockRef;
    readonly reorganised: boolean;
    readonly at: Date;
  },
): Promise<void> {
  const { scope, head, reorganised, at } = seen;
  await tx.query(
    `update tallyd.evm_chain
        set head_block = $2,
            head_hash = $3,
            head_time = $4,
            tip_at = $5,
            reorganised = reorganised + $6
      where scope = $1`,
    [scope, head.number, head.hash, head.time, at, reorganised ? 1 : 0],
  );
}

/** Stops a chain loudly, or (reason null) lets it go on. */
export async function saveStop(
  db: Db,
  stop: { readonly scope: string; readonly reason: string | null; readonly at: Date },
): Promise<void> {
  await db.query(
    `insert into tallyd.evm_chain as e (scope, stopped_at, stopped_reason)
     values ($1, case when $2::text is null then null else $3::timestamptz end, $2)
     on conflict (scope) do update
       set stopped_at = case when $2::text is null then null else coalesce(e.stopped_at, $3) end,
           stopped_reason = $2`,
    [stop.scope, stop.reason?.slice(0, 2_000) ?? null, stop.at],
  );
}

/** How an endpoint does. */
export interface EndpointState {
  readonly scope: string;
  readonly endpoint: string;
  readonly state: "ok" | "behind" | "failing" | "aside";
  /** `null` while ok. */
  readonly reason: string | null;
  readonly headBlock: number | null;
  readonly at: Date;
}

/** Notes how an endpoint does; the time of its state is kept while the state is. */
export async function saveEndpoint(db: Db, seen: EndpointState): Promise<void> {
  await db.query(
    `insert into tallyd.evm_endpoint as p (scope, endpoint, state, reason, since, last_ok_at, head_block,
       failures)
     values ($1, $2, $3::text, $4, $5::timestamptz, case when $3::text = 'ok' then $5::timestamptz end, $6,
       case when $3::text = 'ok' then 0 else 1 end)
     on conflict (scope, endpoint) do update
       set state = excluded.state,
           reason = excluded.reason,
           since = case when p.state = excluded.state then p.since else excluded.since end,
           last_ok_at = coalesce(excluded.last_ok_at, p.last_ok_at),
           head_block = coalesce(excluded.head_block, p.head_block),
           failures = case when excluded.state = 'ok' then 0 else p.failures + 1 end`,
    [
      seen.scope,
      seen.endpoint,
      seen.state,
      seen.reason?.slice(0, 2_000) ?? null,
      seen.at,
      seen.headBlock,
    ],
  );
}

/** Forgets endpoints that are configured no more. */
export async function keepEndpoints(
  db: Db,
  scope: string,
  endpoints: readonly string[],
): Promise<void> {
  await db.query(
    "delete from tallyd.evm_endpoint where scope = $1 and endpoint <> all ($2::text[])",
    [scope, endpoints],
  );
}

/** How many endpoints of each chain are in which state. */
export async function listEndpointStates(
  db: Db,
): Promise<{ readonly scope: string; readonly state: string; readonly endpoints: number }[]> {
  const found = await db.query<{ scope: string; state: string; endpoints: number }>(
    `select scope, state, count(*)::int as endpoints
       from tallyd.evm_endpoint
      group by scope, state
      order by scope, state`,
  );
  return found.rows;
}
