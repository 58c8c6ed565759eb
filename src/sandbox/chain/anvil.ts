/** A real EVM on this machine: anvil, from its npm package. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync } from "node:fs";
import { createRequire } from "node:module";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";

import { call } from "./json-rpc.ts";

/** The binary is not there: its package exists for one platform only. */
export class ChainUnavailableError extends Error {
  constructor(detail: string) {
    super(
      `no local chain on ${process.platform}-${process.arch}: ${detail}; ` +
        `what needs a chain cannot run here, everything else can`,
    );
    this.name = "ChainUnavailableError";
  }
}

/** How a chain is started; everything has a default. */
export interface AnvilOptions {
  /** Default 31337. */
  readonly chainId?: number;
  /**
   * Seconds between blocks. `null` (the default): a block for each transaction, and when `mine`
   * says so; `automine(false)` leaves only the latter.
   */
  readonly blockTimeSeconds?: number | null;
  /**
   * Blocks of an epoch, default 32: `safe` is one epoch behind the head, `finalized` two, and never
   * below block 0. So 1 gives head-1 and head-2, and 0 makes both the head itself.
   */
  readonly slotsInAnEpoch?: number;
  /** Time of block 0, unix seconds; default now. */
  readonly genesisSeconds?: number;
}

/** A running chain. */
export interface Anvil {
  readonly url: string;
  readonly chainId: number;
  /** Throws LocalRpcError. */
  readonly rpc: (method: string, params?: readonly unknown[]) => Promise<unknown>;
  /** Ends it and waits until it is gone. */
  readonly stop: () => Promise<void>;
}

const PACKAGE = "@foundry-rs/anvil-linux-amd64";
// It answers within a second; a machine under full load needs more.
const START_MAX_MS = 20_000;
const STOP_MAX_MS = 3_000;
// Holds several transactions of the sandbox, which each reserve far more than they use.
const BLOCK_GAS = "2000000000";

// The guard waits on a pipe whose other end only this process holds: it closes when we stop, and
// also when we are killed, which no handler of ours would see. What anvil left on the disk goes
// too.
const GUARD = `
home="$1"; shift
"$@" </dev/null &
child=$!
exec >/dev/null 2>&1
read -r _
kill -KILL "$child"
wait "$child"
rm -rf -- "$home"
`;

/** Starts a chain on a free port. Throws ChainUnavailableError where there is no binary. */
export async function startAnvil(options: AnvilOptions = {}): Promise<Anvil> {
  const chainId = options.chainId ?? 31_337;
  const file = binary();
  // Old states are written below its home directory, one file a block, and are never removed.
  const home = mkdtempSync(path.join(tmpdir(), "anvil-"));
  const args = ["-c", GUARD, "sh", home, file, ...flags(options, chainId)];
  const guard = spawn("/bin/sh", args, {
    stdio: ["pipe", "pipe", "pipe"],
    // A session of its own: Ctrl-C reaches us alone, and we stop it after our own last call.
    detached: true,
    env: { HOME: home, TMPDIR: home, PATH: "/usr/sbin:/usr/bin:/sbin:/bin" },
  });
  try {
    const port = await listeningPort(guard);
    guard.unref();
    const url = `http://127.0.0.1:${String(port)}`;
    return {
      url,
      chainId,
      rpc: (method, params = []) => call(url, method, params),
      stop: () => stop(guard),
    };
  } catch (error) {
    await stop(guard);
    throw error;
  }
}

function binary(): string {
  let found: string;
  try {
    const resolve = createRequire(import.meta.url).resolve;
    found = path.join(path.dirname(resolve(`${PACKAGE}/package.json`)), "bin", "anvil");
  } catch {
    throw new ChainUnavailableError(`the optional package ${PACKAGE} is not installed`);
  }
  if (process.platform !== "linux" || process.arch !== "x64" || !existsSync(found)) {
    throw new ChainUnavailableError(`${PACKAGE} has no binary for it`);
  }
  return found;
}

function flags(options: AnvilOptions, chainId: number): string[] {
  const { blockTimeSeconds, slotsInAnEpoch, genesisSeconds } = options;
  return [
    // Port 0: the system picks a free one and anvil prints it, so that no other can take it
    // between.
    ...["--host", "127.0.0.1", "--port", "0", "--chain-id", String(chainId)],
    ...["--slots-in-an-epoch", String(slotsInAnEpoch ?? 32)],
    ...["--gas-limit", BLOCK_GAS, "--no-request-size-limit"],
    ...(blockTimeSeconds === null || blockTimeSeconds === undefined
      ? []
      : ["--block-time", String(blockTimeSeconds)]),
    ...(genesisSeconds === undefined ? [] : ["--timestamp", String(genesisSeconds)]),
  ];
}

function listeningPort(guard: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    let seen = "";
    const fail = (what: string): void => {
      clearTimeout(timer);
      reject(new Error(`anvil ${what}: ${seen.slice(-500)}`));
    };
    const timer = setTimeout(() => {
      fail(`did not start within ${String(START_MAX_MS)} ms`);
    }, START_MAX_MS);
    const look = (chunk: Buffer): void => {
      seen += chunk.toString("utf8");
      const port = /Listening on 127\.0\.0\.1:(\d+)/.exec(seen)?.[1];
      if (port === undefined) return;
      clearTimeout(timer);
      // The rest of what it prints goes nowhere: a full pipe would stop it.
      guard.stdout?.removeAllListeners().resume();
      guard.stderr?.removeAllListeners().resume();
      // The pipes must not keep this process alive.
      for (const pipe of [guard.stdin, guard.stdout, guard.stderr]) unrefPipe(pipe);
      resolve(Number(port));
    };
    guard.stdout?.on("data", look);
    guard.stderr?.on("data", look);
    // The guard itself waits for us; that anvil is gone shows at the end of its output.
    guard.stdout?.once("end", () => {
      fail("ended");
    });
    guard.once("error", reject);
  });
}

/** Pipes of a child are sockets, which their type does not say. */
function unrefPipe(pipe: unknown): void {
  if (pipe instanceof Socket) pipe.unref();
}

async function stop(guard: ChildProcess): Promise<void> {
  if (guard.exitCode !== null || guard.signalCode !== null || guard.pid === undefined) return;
  const ended = new Promise((resolve) => guard.once("exit", resolve));
  guard.ref();
  guard.stdin?.end();
  const timer = setTimeout(() => guard.kill("SIGKILL"), STOP_MAX_MS);
  await ended;
  clearTimeout(timer);
}
