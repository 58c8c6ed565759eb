import type { Pool } from "pg";

import { addMs } from "../../core/clock.ts";
import type { ChainSettings } from "../../core/settings.ts";
import type { ChainRow } from "../../store/evm-chain.ts";
import { blockAt } from "./start-block.ts";
import type { Usable } from "./survey.ts";

/**
 * The first block that has to be read: the configured one, else the one before the oldest open row
 * of the chain was made, else the newest final one; and further back when somebody asks for it.
 * What
 * was read once stays read.
 */
export async function firstBlock(
  deps: { readonly pool: Pool; readonly clockSlackMs: number },
  input: {
    readonly chain: ChainSettings;
    readonly known: ChainRow;
    readonly usable: Usable;
    readonly since: Date | null;
  },
): Promise<number> {
  const { chain, known, usable, since } = input;
  const wanted: number[] = [];
  if (known.fromBlock !== null) wanted.push(known.fromBlock);
  if (chain.startBlock !== null) wanted.push(chain.startBlock);
  const times = [since];
  if (chain.startBlock === null) times.push(await oldestOpen(deps, chain.chainId));
  for (const time of times) {
    if (time === null || (known.fromBlock !== null && (await isRead(deps.pool, known, time))))
      continue;
    wanted.push(await blockAt(usable.endpoint, time, usable.final));
  }
  if (wanted.length === 0) wanted.push(usable.final.number);
  return Math.min(...wanted, usable.final.number);
}

/** Rows that the resolver may have to prove something about. */
async function oldestOpen(
  deps: { readonly pool: Pool; readonly clockSlackMs: number },
  scope: string,
): Promise<Date | null> {
  const found = await deps.pool.query<{ at: Date | null }>(
    `select min(created_at) as at
       from tallyd.intent
      where scope = $1
        and state in ('key_minted', 'in_flight', 'failed_retryable', 'reconciling')
        and vanished_at is null`,
    [scope],
  );
  const at = found.rows[0]?.at ?? null;
  return at === null ? null : addMs(at, -deps.clockSlackMs);
}

async function isRead(pool: Pool, known: ChainRow, time: Date): Promise<boolean> {
  const found = await pool.query<{ read: boolean }>(
    `select coalesce(lower(covered) <= $2, false) as read
       from tallyd.source
      where source = 'evm.logs'
        and scope = $1`,
    [known.scope, time],
  );
  return found.rows[0]?.read ?? false;
}
