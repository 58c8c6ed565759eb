/**
 * `npm run bench [name …]`: speed as a ratio to a floor that is measured in the same run, on real
 * PostgreSQL with its usual durability. Nothing here passes or fails.
 */
import { mkdtemp, chmod, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";

import { startEmbedded } from "../../src/store/embedded.ts";
import { benchAudit } from "./audit.ts";
import { benchChain } from "./chain.ts";
import { benchWebhook } from "./webhook.ts";

/** One measured line. */
export interface Measured {
  readonly name: string;
  readonly figure: string;
  readonly floor: string;
  /** Figure against floor; `null`: a plain figure with an aim of its own. */
  readonly ratio: number | null;
  readonly aim: string;
}

/** What every bench gets: a server of its own. */
export interface BenchWorld {
  readonly serverUrl: string;
  readonly say: (line: string) => void;
}

type Bench = (world: BenchWorld) => Promise<readonly Measured[]>;

const BENCHES: Readonly<Record<string, Bench>> = {
  webhook: benchWebhook,
  audit: benchAudit,
  chain: benchChain,
};

async function main(names: readonly string[]): Promise<number> {
  const say = (line: string): void => {
    process.stderr.write(`${line}\n`);
  };
  const unknown = names.filter((name) => !(name in BENCHES));
  if (unknown.length > 0) {
    say(`unknown: ${unknown.join(", ")}; there are ${Object.keys(BENCHES).join(", ")}`);
    return 2;
  }
  const dataDir = await mkdtemp(path.join(os.tmpdir(), "tallyd-bench-"));
  await chmod(dataDir, 0o711);
  const server = await startEmbedded({ dataDir, settings: {}, log: () => undefined });
  try {
    const lines: Measured[] = [];
    for (const [name, bench] of Object.entries(BENCHES)) {
      if (names.length > 0 && !names.includes(name)) continue;
      say(`== ${name}`);
      lines.push(...(await bench({ serverUrl: server.url, say })));
    }
    print(lines);
    return 0;
  } finally {
    await server.stop();
    await rm(dataDir, { recursive: true, force: true });
  }
}

function print(lines: readonly Measured[]): void {
  const head = { name: "work", figure: "figure", floor: "floor", ratio: "ratio", aim: "aim" };
  const rows = [head, ...lines.map((line) => ({ ...line, ratio: line.ratio?.toFixed(2) ?? "-" }))];
  const columns = ["name", "figure", "floor", "ratio", "aim"] as const;
  const widths = columns.map((column) => Math.max(...rows.map((row) => row[column].length)));
  for (const row of rows) {
    const cells = columns.map((column, index) => row[column].padEnd(widths[index] ?? 0));
    process.stdout.write(`${cells.join("  ").trimEnd()}\n`);
  }
  const resident = process.memoryUsage().rss / 1_048_576;
  process.stdout.write(`resident memory of this process: ${resident.toFixed(0)} MB\n`);
}

process.exitCode = await main(process.argv.slice(2));
