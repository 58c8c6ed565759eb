import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import {
  chown,
  link,
  mkdir,
  readFile,
  readdir,
  realpath,
  rename,
  rm,
  stat,
  unlink,
  writeFile,
} from "node:fs/promises";
import path from "node:path";

import { FALLBACK_ROOT, makeOpenFolder, reachableBinaries } from "./embedded-binaries.ts";
import type { Binaries } from "./embedded-binaries.ts";
import { canEnter, runTool, serverUser } from "./embedded-process.ts";
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

const LOCATION_FILE = "postgres-location";
const PREPARING_PREFIX = "postgres.preparing-";
// An initdb takes seconds to minutes; what is an hour old belongs to a process that died.
const PREPARING_AGE_MAX_MS = 3_600_000;

/**
 * Finds or makes the cluster under `dataDir`. A new one is prepared aside and renamed into place
 * whole, so that a killed initdb leaves nothing behind that looks like a cluster, and of two
 * processes that prepare at once one wins and both use the winner's. Throws `EmbeddedError`.
 */
export async function prepareCluster(options: {
  readonly dataDir: string;
  /** False: the data may be lost with the machine, so nothing waits for the disk. */
  readonly durable: boolean;
  readonly log: (line: string) => void;
}): Promise<Cluster> {
  const { dataDir, durable, log } = options;
  await mkdir(dataDir, { recursive: true, mode: 0o711 });
  const folder = await realpath(dataDir);
  const wanted = path.join(folder, "postgres");
  const runAs = await serverUser([path.join(wanted, "data"), folder]);
  const root = await reachableRoot(wanted, runAs, log);
  const binaries = await reachableBinaries(runAs, log);
  const data = path.join(root, "data");
  if (!existsSync(data)) {
    log(`preparing an embedded PostgreSQL in ${root}`);
    await createCluster(root, binaries, { runAs, durable });
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
  const root = path.join(FALLBACK_ROOT, randomBytes(6).toString("hex"), "postgres");
  await makeOpenFolder(path.dirname(root), runAs);
  const written = await writeOnce(note, `${root}\n`);
  if (written !== root) return written;
  log(
    `PostgreSQL does not run as root, and its user may not enter ${folder}: the database is kept ` +
      `in ${root} instead (noted in ${note})`,
  );
  return root;
}

/** Writes a file whole, unless another process was first; returns what it holds, trimmed. */
async function writeOnce(file: string, text: string): Promise<string> {
  const aside = `${file}.${randomBytes(6).toString("hex")}`;
  await writeFile(aside, text);
  // A link is made whole or refused, so nobody reads half a note.
  await link(aside, file).catch(() => undefined);
  await unlink(aside);
  return (await readFile(file, "utf8")).trim();
}

async function createCluster(
  root: string,
  binaries: Binaries,
  how: { readonly runAs: RunAs | undefined; readonly durable: boolean },
): Promise<void> {
  const { runAs, durable } = how;
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
        ...(durable ? [] : ["--no-sync"]),
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
  const stored = await readFile(path.join(data, "PG_VERSION"), "utf8").then(
    (text) => text.trim(),
    (error: unknown) => {
      throw new EmbeddedError(`${data} cannot be read as a PostgreSQL data folder`, {
        cause: error,
      });
    },
  );
  const printed = await runTool(binaries.postgres, ["--version"], runAs);
  const own = /(\d+)/.exec(printed)?.[1];
  if (stored !== own) {
    throw new EmbeddedError(
      `${data} was written by PostgreSQL ${stored}, this ` +
        `tallyd brings ${String(own)}: dump it with the old version and restore it, or move it away`,
    );
  }
}
