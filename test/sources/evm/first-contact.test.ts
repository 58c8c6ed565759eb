/**
 * Goal: no endpoint alone decides which chain it is where others are there to ask (case B38).
 * Method: two real chains of one id, each behind a door.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { systemClock } from "../../../src/core/clock.ts";
import { silentLog } from "../../../src/core/log.ts";
import { startRpcProxy } from "../../../src/sandbox/chain/rpc-proxy.ts";
import type { RpcProxy } from "../../../src/sandbox/chain/rpc-proxy.ts";
import { openChains } from "../../../src/sources/evm/open-chains.ts";
import { scanChain } from "../../../src/sources/evm/scan.ts";
import type { Scanned } from "../../../src/sources/evm/scan.ts";
import { getChain } from "../../../src/store/evm-chain.ts";
import { SCOPE, chainFault, openChainWorld } from "../../support/chain-world.ts";
import type { ChainWorld } from "../../support/chain-world.ts";
import { createTestDb } from "../../support/db.ts";
import type { TestDb } from "../../support/db.ts";

const fault = await chainFault();

let db: TestDb;
let world: ChainWorld;
let foreign: ChainWorld;
let second: RpcProxy;
let warnings: string[];

beforeAll(async () => {
  if (fault !== "") return;
  world = await openChainWorld({ genesisSeconds: 1_700_000_000 });
  foreign = await openChainWorld({ genesisSeconds: 1_700_000_001 });
  second = await startRpcProxy(world.anvil.url);
  const { chain, token, payer, payee } = world;
  await chain.submit(token, await chain.sign(token, payer, payee.address, 5n));
  await chain.mine(5);
  await foreign.chain.mine(20);
});
afterAll(async () => {
  if (fault !== "") return;
  await second.close();
  await foreign.close();
  await world.close();
});
beforeEach(async () => {
  db = await createTestDb({ template: "migrated" });
  warnings = [];
});
afterEach(() => db.close());

function scan(...rpcUrls: readonly string[]): Promise<Scanned> {
  const reader = openChains([world.settings({ rpcUrls })], () => undefined).get(SCOPE);
  if (reader === undefined) throw new Error("no reader");
  const log = { ...silentLog, warn: (line: string) => void warnings.push(line) };
  const deps = { pool: db.pool, clock: systemClock, log, clockSlackMs: 300_000 };
  return scanChain(deps, reader, { signal: new AbortController().signal });
}

describe.skipIf(fault !== "")("first contact", () => {
  test("default: a single endpoint is believed, and that is said", async () => {
    expect(await scan(world.proxy.url)).toMatchObject({ failed: null, charges: 1 });
    expect(warnings).toEqual([expect.stringContaining("unconfirmed")]);
    // Afterwards it is known.
    expect(await scan(world.proxy.url)).toMatchObject({ failed: null });
    expect(warnings).toHaveLength(1);
  });

  test("default: two that agree are believed without a word", async () => {
    expect(await scan(world.proxy.url, second.url)).toMatchObject({ failed: null, charges: 1 });
    expect(warnings).toEqual([]);
  });

  test("error: one against one stops the chain, and no first block is stored", async () => {
    const scanned = await scan(foreign.proxy.url, world.proxy.url);
    expect(scanned.failed?.message).toContain("which chain is it?");
    const stopped = await getChain(db.pool, SCOPE);
    expect(stopped).toMatchObject({ genesisHash: null, final: null });
    expect(stopped.stoppedReason).toContain("which chain is it?");
    // The stranger is gone: the chain goes on by itself, as the right one.
    expect(await scan(second.url, world.proxy.url)).toMatchObject({ failed: null, charges: 1 });
    expect((await getChain(db.pool, SCOPE)).stoppedReason).toBeNull();
  });

  test("behavior: one against two is outvoted and set aside", async () => {
    const scanned = await scan(foreign.proxy.url, world.proxy.url, second.url);
    expect(scanned).toMatchObject({ failed: null, charges: 1 });
    const aside = await db.pool.query<{ reason: string }>(
      `select reason
         from tallyd.evm_endpoint
        where state = 'aside'`,
    );
    expect(aside.rows).toEqual([{ reason: expect.stringContaining("another chain") as string }]);
  });
});
