import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";

import { z } from "zod";

import { CODES } from "../core/finding.ts";
import type { Code, Severity } from "../core/finding.ts";
import { bindNames } from "../store/named-sql.ts";
import type { NamedSql } from "../store/named-sql.ts";
import { packageSqlDir } from "../store/sql-files.ts";

/** One detector: a file of `sql/detectors`, found by its folder, described by its header. */
export interface Detector {
  /** File stem, e.g. `double_charge_similar`. */
  readonly name: string;
  /** Code of its findings: `--! code:`, else the stem. */
  readonly code: Code;
  /** What it speaks about: operations one by one, or the sources themselves. */
  readonly about: "operations" | "sources";
  readonly title: string;
  /** Severity of a finding whose row names none. */
  readonly severity: Severity;
  /** Sources that must see before it may be believed. */
  readonly needs: readonly string[];
  /** Advice of a finding whose row names none. */
  readonly advice: string;
  readonly sql: NamedSql;
}

const HEADER = /^--! ([a-z]+): (.+)$/gm;

const headerShape = z.object({
  code: z.enum(CODES),
  about: z.enum(["operations", "sources"]).default("operations"),
  title: z.string().min(1),
  severity: z.enum(["info", "warning", "critical"]),
  needs: z
    .string()
    .min(1)
    .transform((text) => text.split(",").map((need) => need.trim())),
  advice: z.string().min(1),
});

/** Reads one detector. Throws when its header is incomplete, naming file and key. */
export function parseDetector(name: string, text: string): Detector {
  const header: Record<string, string> = { code: name };
  for (const [, key, value] of text.matchAll(HEADER)) {
    if (key !== undefined && value !== undefined) header[key] = value.trim();
  }
  const parsed = headerShape.safeParse(header);
  if (!parsed.success) {
    throw new Error(`sql/detectors/${name}.sql: ${z.prettifyError(parsed.error)}`);
  }
  return { name, ...parsed.data, sql: bindNames(text) };
}

/** All detectors of the package, in the order of their names. Throws when there is none. */
export function loadDetectors(folder = path.join(packageSqlDir(), "detectors")): Detector[] {
  const files = readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .sort();
  if (files.length === 0) throw new Error(`${folder} holds no detector: the package is incomplete`);
  return files.map((file) =>
    parseDetector(path.basename(file, ".sql"), readFileSync(path.join(folder, file), "utf8")),
  );
}
