/** The real daemon as a process of its own, exactly as `tallyd run` starts it. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { createWriteStream } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

export interface DaemonProcess {
  /** Ends when the daemon has stopped by itself; its last lines tell why. */
  readonly exited: Promise<string>;
  readonly stop: () => Promise<void>;
}

// A cold start compiles, migrates and opens two ports: seconds, even on a busy machine.
const READY_WAIT_MAX_MS = 60_000;
const READY_POLL_MS = 100;
// The daemon itself finishes or returns its work within ten seconds.
const STOP_WAIT_MAX_MS = 15_000;
const LAST_LINES = 20;

/** Starts `tallyd run` and waits until its admin port says that it is alive. */
export async function startDaemon(input: {
  readonly env: Readonly<Record<string, string>>;
  readonly adminPort: number;
  /** Where its log goes. */
  readonly logFile: string;
}): Promise<DaemonProcess> {
  const here = fileURLToPath(import.meta.url);
  const bin = path.join(path.dirname(here), "..", `bin${path.extname(here)}`);
  // The same loader as ours, so that it runs from the sources and from the build.
  const child = spawn(process.execPath, [...process.execArgv, bin, "run"], {
    env: { ...input.env },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const lines: string[] = [];
  const log = createWriteStream(input.logFile);
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    log.write(text);
    lines.push(...text.split("\n").filter((line) => line !== ""));
    lines.splice(0, Math.max(0, lines.length - LAST_LINES));
  });
  const exited = new Promise<string>((resolve) => {
    child.once("exit", () => {
      log.end();
      resolve(lines.join("\n"));
    });
  });
  await waitUntilAlive(child, input.adminPort, lines);
  return { exited, stop: () => stop(child, exited) };
}

async function waitUntilAlive(
  child: ChildProcess,
  adminPort: number,
  lines: readonly string[],
): Promise<void> {
  const url = `http://127.0.0.1:${String(adminPort)}/healthz`;
  for (let waited = 0; waited < READY_WAIT_MAX_MS; waited += READY_POLL_MS) {
    if (child.exitCode !== null) break;
    const answer = await fetch(url).catch(() => null);
    if (answer?.ok === true) return;
    await sleep(READY_POLL_MS);
  }
  child.kill("SIGKILL");
  throw new Error(`the daemon did not start:\n${lines.join("\n")}`);
}

async function stop(child: ChildProcess, exited: Promise<string>): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill("SIGTERM");
  const late = sleep(STOP_WAIT_MAX_MS, "late", { ref: false });
  if ((await Promise.race([exited, late])) === "late") child.kill("SIGKILL");
  await exited;
}

/** A port on loopback that is free now. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
  });
  return port;
}
