import { CATALOG, camelCase, entryAt } from "./catalog.ts";
import type { CatalogEntry } from "./catalog.ts";
import { maskDatabaseUrl, maskHookUrl, maskSecret, showSeen } from "./mask.ts";
import { nearestName } from "./nearest.ts";

/** Reads a text file whole; throws when it cannot be read. */
export type ReadFile = (path: string) => string;

/** Environment variables as the process has them. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The two layers laid over each other, still unchecked. */
export interface Layers {
  readonly raw: Readonly<Record<string, unknown>>;
  /** File path of a setting -> the name under which the user gave it. */
  readonly givenAs: ReadonlyMap<string, string>;
  readonly configFile: string | null;
  readonly faults: readonly string[];
  readonly warnings: readonly string[];
}

type Tree = Record<string, unknown>;

// Names under these prefixes are ours, so an unknown one is most likely a slip.
const OWN_PREFIXES = ["TALLYD_", "STRIPE_", "INTENTS_", "SLACK_", "EVM_", "LADDER_", "PAGERDUTY_"];

/** Lays the environment over the file. Faults here are about reading, not about values. */
export function readLayers(input: {
  readonly env: Environment;
  readonly readFile: ReadFile;
}): Layers {
  const faults: string[] = [];
  const givenAs = new Map<string, string>();
  const configFile = given(input.env, "TALLYD_CONFIG") ?? null;
  const raw = configFile === null ? {} : readConfigFile(configFile, input.readFile, faults);
  unflatten(raw, givenAs, faults);
  for (const entry of CATALOG) {
    if (entry.env === null || entry.path === null) continue;
    const text = given(input.env, entry.env);
    if (text === undefined) continue;
    givenAs.set(entry.path, entry.env);
    setAt(raw, entry.path, entry.unit === "json" ? parseJson(entry, text, faults) : text);
  }
  return { raw, givenAs, configFile, faults, warnings: slips(input.env) };
}

/** What was seen at a setting, with secrets masked; other values as JSON, cut where long. */
export function seenAt(path: string, seen: unknown): string {
  const secret = secretAt(path);
  // Endpoints of chains carry their keys in the path.
  if (path.includes(".rpcUrls.") && typeof seen === "string") return maskHookUrl(seen);
  if (secret === undefined || seen === undefined) return showSeen(seen);
  if (typeof seen !== "string") {
    return Array.isArray(seen) ? `a list of ${String(seen.length)}` : `a ${typeof seen}`;
  }
  if (secret === "database") return maskDatabaseUrl(seen);
  if (secret === "hook") return maskHookUrl(seen);
  return seen
    .split(",")
    .map((part) => maskSecret(part.trim()))
    .join(", ");
}

function secretAt(path: string): CatalogEntry["secret"] {
  return (entryAt(path) ?? entryAt(path.replace(/\.\d+$/, "")))?.secret;
}

/** An empty variable counts as not set: compose files pass unset ones that way. */
function given(env: Environment, name: string): string | undefined {
  const text = env[name];
  return text === "" ? undefined : text;
}

function readConfigFile(path: string, readFile: ReadFile, faults: string[]): Tree {
  let text: string;
  try {
    text = readFile(path);
  } catch (error) {
    faults.push(
      `TALLYD_CONFIG: saw ${showSeen(path)}, which cannot be read (${reason(error)}); ` +
        "allowed: the path of a JSON file",
    );
    return {};
  }
  try {
    const parsed: unknown = JSON.parse(text.replace(/^\uFEFF/, ""));
    if (isTree(parsed)) return parsed;
    faults.push(
      `TALLYD_CONFIG: ${path} holds ${kindOf(parsed)}; allowed: one JSON object of settings`,
    );
  } catch (error) {
    faults.push(`TALLYD_CONFIG: ${path} is not JSON (${syntaxReason(error)}); allowed: JSON`);
  }
  return {};
}

/** Moves `inFlightLimit` to `rules.inFlightLimit`: a file may be flat, nested or both. */
function unflatten(raw: Tree, givenAs: Map<string, string>, faults: string[]): void {
  for (const entry of CATALOG) {
    if (entry.env === null || entry.path === null) continue;
    const flat = camelCase(entry.env);
    if (flat === entry.path || !Object.hasOwn(raw, flat)) continue;
    const flatValue = raw[flat];
    // A block and a flat name may be called alike (`chains`): the path itself is not flat.
    Reflect.deleteProperty(raw, flat);
    if (getAt(raw, entry.path) !== undefined) {
      faults.push(`${flat}: also given as ${entry.path}; allowed: one of the two`);
      continue;
    }
    givenAs.set(entry.path, flat);
    setAt(raw, entry.path, flatValue);
  }
}

/** The names that a file may hold at its top besides the blocks. */
export function flatNames(): string[] {
  return CATALOG.flatMap((entry) =>
    entry.env === null || entry.path === null ? [] : [camelCase(entry.env)],
  );
}

function parseJson(entry: CatalogEntry, text: string, faults: string[]): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    faults.push(
      `${entry.env ?? ""}: saw ${String(text.length)} characters that are not JSON (${syntaxReason(error)}); ` +
        `allowed: ${entry.meaning}`,
    );
    return undefined;
  }
}

function slips(env: Environment): string[] {
  const known = CATALOG.flatMap((entry) => (entry.env === null ? [] : [entry.env]));
  return Object.keys(env)
    .filter((name) => OWN_PREFIXES.some((prefix) => name.startsWith(prefix)))
    .filter((name) => !known.includes(name))
    .sort()
    .map((name) => {
      const near = nearestName(name, known);
      return `${name}: no such setting${near === null ? "" : `; did you mean ${near}?`}`;
    });
}

/** The value at a path of the raw settings; `undefined` when a part of the way is missing. */
export function getAt(tree: Readonly<Record<string, unknown>>, path: string): unknown {
  let at: unknown = tree;
  for (const part of path.split(".")) {
    if (Array.isArray(at)) at = (at as unknown[])[Number(part)];
    else if (isTree(at) && Object.hasOwn(at, part)) at = at[part];
    else return undefined;
  }
  return at;
}

function setAt(tree: Tree, path: string, value: unknown): void {
  const parts = path.split(".");
  const last = parts.pop() ?? path;
  let at = tree;
  for (const part of parts) {
    const next = at[part];
    // A block of a wrong kind stays: zod names it, and the setting itself is then not reached.
    if (next !== undefined && !isTree(next)) return;
    const block: Tree = next ?? {};
    at[part] = block;
    at = block;
  }
  at[last] = value;
}

function isTree(value: unknown): value is Tree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  return value === null ? "null" : `a ${typeof value}`;
}

function reason(error: unknown): string {
  if (error instanceof Error && "code" in error && error.code === "ENOENT") return "no such file";
  return error instanceof Error ? error.message : String(error);
}

/** The parser's sentence without the file's text: that could hold secrets. */
function syntaxReason(error: unknown): string {
  const message = error instanceof Error ? error.message : "";
  return /position \d+(?: \(line \d+ column \d+\))?/.exec(message)?.[0] ?? "it ends too early";
}
