/**
 * A process that reads one chain and nothing else, so that its memory is the scan's own. Told on
 * the command line: settings of the chain, database. Answers one line of JSON.
 */
import { systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/log.ts";
import type { ChainSettings } from "../../src/core/settings.ts";
import { openChains } from "../../src/sources/evm/open-chains.ts";
import { scanChain } from "../../src/sources/evm/scan.ts";
import { openPool } from "../../src/store/pool.ts";

/** What the process answers. */
export interface ChildScan {
  readonly seconds: number;
  readonly logs: number;
  /** Why the scan did not end well; `null`: it did. */
  readonly failed: string | null;
  /** The most that was resident, before the scan and at the end of it. */
  readonly residentMb: { readonly before: number; readonly peak: number };
  /** Blocks of every list of logs that was asked for. */
  readonly lists: readonly unknown[];
}

const CONNECTIONS_MAX = 10;

function residentPeak(): number {
  return process.resourceUsage().maxRSS / 1_024;
}

async function main(settings: ChainSettings, databaseUrl: string): Promise<ChildScan> {
  const reader = [...openChains([settings], () => undefined).values()][0];
  if (reader === undefined) throw new Error("no reader");
  const lists: unknown[] = [];
  const endpoints = reader.endpoints.map((endpoint) => ({
    ...endpoint,
    rpc: {
      batch: (...[calls, signal]: Parameters<typeof endpoint.rpc.batch>) => {
        for (const { method, params } of calls) if (method === "eth_getLogs") lists.push(params[0]);
        return endpoint.rpc.batch(calls, signal);
      },
    },
  }));
  const pool = openPool({ url: databaseUrl, applicationName: "bench", max: CONNECTIONS_MAX });
  const deps = { pool, clock: systemClock, log: silentLog, clockSlackMs: 300_000 };
  const { signal } = new AbortController();
  const before = residentPeak();
  const start = performance.now();
  const scanned = await scanChain(deps, { ...reader, endpoints }, { signal });
  const seconds = (performance.now() - start) / 1_000;
  await pool.end();
  const failed = scanned.failed?.message ?? null;
  return {
    ...{ seconds, logs: scanned.logs, failed, lists },
    residentMb: { before, peak: residentPeak() },
  };
}

const [settings, databaseUrl] = process.argv.slice(2);
if (settings === undefined || databaseUrl === undefined) throw new Error("settings, database");
const scan = await main(JSON.parse(settings) as ChainSettings, databaseUrl);
process.stdout.write(`${JSON.stringify(scan)}\n`);
