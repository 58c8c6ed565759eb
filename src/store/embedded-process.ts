import { execFile, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { closeSync, constants, fchownSync, openSync } from "node:fs";
import { readFile, readlink, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";

import { EmbeddedError } from "./errors.ts";

const run = promisify(execFile);

/** A system user by its numbers; undefined means the user that this process already is. */
export interface RunAs {
  readonly uid: number;
  readonly gid: number;
}

/** First lines of PostgreSQL's `postmaster.pid`. */
export interface PostmasterFile {
  readonly pid: number;
  readonly port: number;
}

// id, useradd and the probes below answer at once; half a minute means that the machine is stuck.
const COMMAND_WAIT_MAX_MS = 30_000;
// initdb syncs some forty megabytes; on a slow disk that has taken minutes.
const INITDB_WAIT_MAX_MS = 300_000;
const POSTGRES_USER = "postgres";

// The server and its tools see none of our settings (they hold secrets), and no PG* variable of
// the user's shell can turn them to another cluster.
const CLEAN_ENV = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C", TZ: "UTC" } as const;

/** Runs a tool to its end in a clean environment; throws with its output when it fails. */
export async function runTool(
  file: string,
  args: readonly string[],
  runAs: RunAs | undefined,
): Promise<string> {
  const slow = path.basename(file) === "initdb";
  try {
    const done = await run(file, args, {
      ...runAs,
      cwd: "/",
      env: CLEAN_ENV,
      timeout: slow ? INITDB_WAIT_MAX_MS : COMMAND_WAIT_MAX_MS,
    });
    return done.stdout;
  } catch (error) {
    throw new EmbeddedError(`${path.basename(file)} failed: ${outputOf(error)}`, { cause: error });
  }
}

function outputOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const stderr = "stderr" in error && typeof error.stderr === "string" ? error.stderr.trim() : "";
  return stderr === "" ? error.message : stderr;
}

/**
 * The user that the server runs as. PostgreSQL refuses to run as root, so as root this is the
 * owner of the first of these folders that has another owner (an existing cluster, a mounted
 * volume), else the system user `postgres`, which is created when missing.
 */
export async function serverUser(folders: readonly string[]): Promise<RunAs | undefined> {
  if (process.geteuid?.() !== 0) return undefined;
  for (const folder of folders) {
    const owner = await stat(folder).catch(() => undefined);
    // initdb asks the system for its user's name, so a bare number will not do.
    if (owner !== undefined && owner.uid !== 0 && (await hasName(owner.uid))) {
      return { uid: owner.uid, gid: owner.gid };
    }
  }
  const found = await lookUpUser();
  if (found !== undefined) return found;
  await createUser();
  const created = await lookUpUser();
  if (created !== undefined) return created;
  throw new EmbeddedError(
    "PostgreSQL does not run as root and no system user could be created for it: run tallyd as " +
      `an ordinary user, create a user named ${POSTGRES_USER}, or set DATABASE_URL`,
  );
}

async function hasName(uid: number): Promise<boolean> {
  return runTool("id", ["-un", String(uid)], undefined).then(
    () => true,
    () => false,
  );
}

async function lookUpUser(): Promise<RunAs | undefined> {
  try {
    const uid = Number(await runTool("id", ["-u", POSTGRES_USER], undefined));
    const gid = Number(await runTool("id", ["-g", POSTGRES_USER], undefined));
    return { uid, gid };
  } catch {
    return undefined;
  }
}

async function createUser(): Promise<void> {
  try {
    await runTool("useradd", ["--system", "--user-group", POSTGRES_USER], undefined);
  } catch {
    // Alpine's BusyBox has adduser only; when both fail, the look-up that follows says so.
    await runTool("adduser", ["-S", "-D", "-H", POSTGRES_USER], undefined).catch(() => undefined);
  }
}

/** True when that user can enter the folder, and so every folder above it. */
export async function canEnter(folder: string, runAs: RunAs | undefined): Promise<boolean> {
  try {
    await runTool("/bin/sh", ["-c", 'cd -- "$1"', "sh", folder], runAs);
    return true;
  } catch {
    return false;
  }
}

/** True when that user can run the file, with all libraries that it loads. */
export async function canRun(file: string, runAs: RunAs | undefined): Promise<boolean> {
  try {
    await runTool(file, ["--version"], runAs);
    return true;
  } catch {
    return false;
  }
}

/**
 * Starts a server that outlives this process: in a session of its own, so that Ctrl-C reaches
 * tallyd alone, which then stops the server after its own last write. What it prints before its
 * log collector runs goes to `logFile`.
 */
export function spawnServer(options: {
  readonly file: string;
  readonly args: readonly string[];
  readonly runAs: RunAs | undefined;
  readonly logFile: string;
}): ChildProcess {
  // The folder belongs to the server's user: a link that it planted must not be followed as root.
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
  const log = openSync(options.logFile, flags, 0o600);
  try {
    if (options.runAs !== undefined) fchownSync(log, options.runAs.uid, options.runAs.gid);
    const child = spawn(options.file, options.args, {
      ...options.runAs,
      cwd: "/",
      env: CLEAN_ENV,
      detached: true,
      stdio: ["ignore", log, log],
    });
    // A failed spawn also shows as an exit code; without a listener it would end the process.
    child.on("error", () => undefined);
    child.unref();
    return child;
  } finally {
    closeSync(log);
  }
}

/** Reads `postmaster.pid`; undefined when it is absent or not yet complete. */
export async function readPostmasterFile(dataFolder: string): Promise<PostmasterFile | undefined> {
  const text = await readFile(postmasterPath(dataFolder), "utf8").catch(() => "");
  const lines = text.split("\n");
  const pid = Number(lines[0]);
  const port = Number(lines[3]);
  // A standalone backend writes a negative pid; it is no server that one can join.
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined;
  return { pid, port: Number.isSafeInteger(port) ? port : 0 };
}

/** Where a running server leaves its process id. */
export function postmasterPath(dataFolder: string): string {
  return path.join(dataFolder, "postmaster.pid");
}

/**
 * True when the process lives and is the server of this very folder. After a restart of a
 * container the same number often belongs to somebody else, so the number alone proves nothing.
 */
export async function servesFolder(pid: number, dataFolder: string): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it lives, but belongs to another user; the checks below still tell whose it is.
    if (!(error instanceof Error && "code" in error && error.code === "EPERM")) return false;
  }
  const folder = await realpath(dataFolder);
  if (process.platform !== "linux") {
    const command = await runTool("ps", ["-o", "command=", "-p", String(pid)], undefined).catch(
      () => "",
    );
    return command.includes(folder) || command.includes(dataFolder);
  }
  // A server works inside its data folder. A zombie has no working folder, so it counts as gone.
  const workingFolder = await readlink(`/proc/${String(pid)}/cwd`).catch(() => undefined);
  return workingFolder === folder;
}
