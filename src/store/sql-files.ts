import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile, readdir } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { MigrationError } from "./errors.ts";

/** One file of `sql/migrations`. */
export interface MigrationFile {
  /** The number at the head of the name. */
  readonly version: number;
  /** File name, e.g. `0001_inbox.sql`. */
  readonly name: string;
  readonly text: string;
  /** SHA-256 of the text with LF line ends, hex. */
  readonly sha256: string;
  /** An older tallyd does not survive this migration (`--! breaking`). */
  readonly breaking: boolean;
}

/** One file of `sql/views`. */
export interface ViewFile {
  readonly name: string;
  readonly text: string;
}

// dist/src/store is three folders below the package root; more than ten is no package of ours.
const FOLDERS_UP_MAX = 10;
const MIGRATION_NAME = /^(\d{4})_[a-z0-9_]+\.sql$/;
const HEADER = /^--! *(.*)$/gm;

/**
 * The package's `sql` folder, found by walking up from this module to `package.json`, so that it
 * is right both in the source tree and in `dist`. Throws `MigrationError` when there is none.
 */
export function packageSqlDir(): string {
  let folder = path.dirname(fileURLToPath(import.meta.url));
  for (let step = 0; step < FOLDERS_UP_MAX; step += 1) {
    if (existsSync(path.join(folder, "package.json"))) return path.join(folder, "sql");
    folder = path.dirname(folder);
  }
  throw new MigrationError(`no package.json above ${import.meta.url}: sql/ cannot be found`);
}

/** SHA-256 of a text, hex; CRLF counts as LF, because a checkout may have changed line ends. */
export function textSha256(text: string): string {
  return createHash("sha256").update(text.replaceAll("\r\n", "\n"), "utf8").digest("hex");
}

/**
 * Reads `<sqlDir>/migrations` in the order of the numbers. Throws `MigrationError` on a bad name,
 * a number used twice, an unknown `--!` header, or no file at all: an empty folder means that the
 * package is incomplete, not that there is nothing to do.
 */
export async function readMigrations(sqlDir: string): Promise<readonly MigrationFile[]> {
  const folder = path.join(sqlDir, "migrations");
  const names = await sqlNames(folder);
  if (names.length === 0) throw new MigrationError(`${folder} holds no migration`);
  const files = await Promise.all(names.map((name) => readMigration(folder, name)));
  for (const [index, file] of files.entries()) {
    const before = files[index - 1];
    if (before?.version === file.version) {
      throw new MigrationError(`${before.name} and ${file.name} have the same number`);
    }
  }
  return files;
}

/** Reads `<sqlDir>/views` in the order of the names; no folder means no views. */
export async function readViews(sqlDir: string): Promise<readonly ViewFile[]> {
  const folder = path.join(sqlDir, "views");
  if (!existsSync(folder)) return [];
  const names = await sqlNames(folder);
  return Promise.all(
    names.map(async (name) => ({ name, text: await readFile(path.join(folder, name), "utf8") })),
  );
}

async function sqlNames(folder: string): Promise<string[]> {
  try {
    const names = await readdir(folder);
    // Plain code point order: the same on every machine, whatever its locale.
    return names.filter((name) => name.endsWith(".sql")).sort();
  } catch (error) {
    throw new MigrationError(`${folder} cannot be read`, { cause: error });
  }
}

async function readMigration(folder: string, name: string): Promise<MigrationFile> {
  const number = MIGRATION_NAME.exec(name)?.[1];
  if (number === undefined) {
    throw new MigrationError(`${name}: a migration is named NNNN_noun.sql, e.g. 0001_inbox.sql`);
  }
  const text = await readFile(path.join(folder, name), "utf8");
  const headers = [...text.matchAll(HEADER)].map((match) => (match[1] ?? "").trim());
  const unknown = headers.find((header) => header !== "breaking");
  if (unknown !== undefined) {
    throw new MigrationError(`${name}: header "--! ${unknown}" is unknown, only breaking is`);
  }
  const breaking = headers.includes("breaking");
  return { version: Number(number), name, text, sha256: textSha256(text), breaking };
}
