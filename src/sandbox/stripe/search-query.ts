import { invalidParam } from "./errors.ts";

/** One condition of a search query. */
export interface Clause {
  /** `status`, or `metadata` with its key in `key`. */
  readonly field: string;
  readonly key: string | null;
  readonly operator: ":" | ">" | "<" | ">=" | "<=";
  readonly value: string;
  readonly negated: boolean;
}

/** A parsed query: its clauses are joined by AND or by OR, never both. */
export interface SearchQuery {
  readonly clauses: readonly Clause[];
  readonly any: boolean;
}

/** Stripe takes ten clauses at most. */
const CLAUSES_MAX = 10;

const JOINER = /\s+(?:(AND|OR)\s+)?/iy;
const QUOTED = String.raw`'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"`;
/** `-field["key"]:'value'`: sign, field, key (2), operator, value (3). */
const CLAUSE = new RegExp(
  String.raw`(-)?(\w+)(?:\[(?:${QUOTED})\])?(:|>=|<=|>|<)(?:${QUOTED}|([\w.-]+))`,
  "y",
);

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/g, "$1");
}

function clauseAt(query: string, position: number): { clause: Clause; end: number } {
  CLAUSE.lastIndex = position;
  const match = CLAUSE.exec(query);
  if (match === null) {
    throw invalidParam(`We were unable to parse your search query: ${query}`, "query");
  }
  const key = match[3] ?? match[4];
  const clause: Clause = {
    negated: match[1] !== undefined,
    field: match[2] ?? "",
    key: key === undefined ? null : unescaped(key),
    operator: (match[5] ?? ":") as Clause["operator"],
    value: unescaped(match[6] ?? match[7] ?? match[8] ?? ""),
  };
  return { clause, end: CLAUSE.lastIndex };
}

/**
 * Parses `metadata['order']:'a b' AND amount>100`. A space joins like AND; AND and OR cannot be
 * mixed; quotes inside a value are escaped with a backslash (Stripe, search query language).
 */
export function parseQuery(text: string): SearchQuery {
  const query = text.trim();
  const clauses: Clause[] = [];
  const joiners = new Set<string>();
  let position = 0;
  while (position < query.length) {
    const { clause, end } = clauseAt(query, position);
    clauses.push(clause);
    if (clauses.length > CLAUSES_MAX) throw invalidParam("Too many clauses", "query");
    if (end >= query.length) break;
    JOINER.lastIndex = end;
    const joiner = JOINER.exec(query);
    if (joiner === null) throw invalidParam("We were unable to parse your search query", "query");
    joiners.add((joiner[1] ?? "AND").toUpperCase());
    position = JOINER.lastIndex;
  }
  if (clauses.length === 0) throw invalidParam("The search query is empty", "query");
  if (joiners.size > 1) throw invalidParam("AND and OR cannot be combined", "query");
  return { clauses, any: joiners.has("OR") };
}
