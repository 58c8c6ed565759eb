/** The statements about the gateway's rows: the one writer of the table. */
import { randomUUID } from "node:crypto";

import type { Pool } from "pg";

import { isAliveSql } from "./session.ts";
import type { Session } from "./session.ts";
import { tableName } from "./table.ts";

/** An answer as it was sent. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** `null`: it was too large to be kept. */
  readonly body: Buffer | null;
}

/** What a request is known by. */
export interface Arrival {
  readonly scope: string;
  readonly principal: string;
  readonly id: string;
  /** SHA-256 of all that makes the request this one. */
  readonly fingerprint: string;
  /** SHA-256 of what was signed; `null`: nothing. */
  readonly authHash: string | null;
}

/** For how long. */
export interface Keeping {
  readonly answerMs: number;
  readonly authorizationMs: number;
}

/** The right to run a request once. */
export interface Claim {
  readonly arrival: Arrival;
  readonly attempt: string;
  /** An earlier run ended nobody knows how: it may have paid or acted. */
  readonly wasUnknown: boolean;
}

/** What an arrival is told. */
export type Admission =
  | { readonly kind: "admitted"; readonly claim: Claim }
  | { readonly kind: "replay"; readonly answer: Answer }
  | { readonly kind: "conflict" | "authorization_reused" | "in_progress" }
  | { readonly kind: "unknown" | "expired" | "not_kept" };

/** Whatever holds the rows. */
export interface StoreDeps {
  readonly pool: Pick<Pool, "query">;
  readonly session: Session;
  readonly schema: string;
  /** Attempts that this process runs: it knows of them also when its sign of life was cut off. */
  readonly running: ReadonlySet<string>;
}

interface Row {
  readonly same_id: boolean;
  readonly fingerprint: string;
  readonly auth_hash: string | null;
  readonly state: "running" | "done" | "unknown";
  readonly attempt: string;
  readonly status: number | null;
  readonly headers: string | null;
  readonly body: Buffer | null;
  readonly alive: boolean;
  readonly answer_over: boolean;
  readonly forgotten: boolean;
}

// Each turn is lost to a rival that moved the row; more than this is no race but a fault.
const TURNS_MAX = 20;

/**
 * Admits a request at most once. `runUnknownAgain`: whether a request whose last run ended nobody
 * knows how may run again (a signed authorization can settle once only; a plain handler may not).
 */
export async function admit(
  deps: StoreDeps,
  arrival: Arrival,
  options: Keeping & { readonly runUnknownAgain: boolean },
): Promise<Admission> {
  for (let turn = 0; turn < TURNS_MAX; turn += 1) {
    const found = await readRow(deps, arrival);
    const row =
      found !== null && deps.running.has(found.attempt) ? { ...found, alive: true } : found;
    if (row === null) {
      const claim = await insertClaim(deps, arrival, options.answerMs);
      if (claim !== null) return { kind: "admitted", claim };
      continue;
    }
    const runs = row.state === "running" && row.alive;
    if (row.forgotten && !runs) {
      await dropAttempt(deps, row.attempt);
      continue;
    }
    const told = judge(row, arrival, options.runUnknownAgain);
    if (told !== null) return told;
    const claim = await takeOver(deps, arrival, row);
    if (claim !== null) return { kind: "admitted", claim };
  }
  throw new Error(`request ${arrival.id} changed hands ${String(TURNS_MAX)} times at once`);
}

/** What stands in the way; `null`: the row can be taken over. */
function judge(row: Row, arrival: Arrival, runUnknownAgain: boolean): Admission | null {
  if (!row.same_id) return { kind: "authorization_reused" };
  if (row.fingerprint !== arrival.fingerprint) return { kind: "conflict" };
  if (row.state === "done") return answerOf(row);
  if (row.state === "running" && row.alive) return { kind: "in_progress" };
  return runUnknownAgain ? null : { kind: "unknown" };
}

function answerOf(row: Row): Admission {
  if (row.answer_over) return { kind: "expired" };
  if (row.body === null || row.status === null || row.headers === null) return { kind: "not_kept" };
  const headers = JSON.parse(row.headers) as Answer["headers"];
  return { kind: "replay", answer: { status: row.status, headers, body: row.body } };
}

async function readRow(deps: StoreDeps, arrival: Arrival): Promise<Row | null> {
  const { scope, principal, id, authHash } = arrival;
  const found = await deps.pool.query<Row>(
    `select (g.scope = $1 and g.principal = $2 and g.id = $3) as same_id,
            g.fingerprint,
            g.auth_hash,
            g.state,
            g.attempt::text as attempt,
            g.status,
            g.headers::text as headers,
            g.body,
            case when g.state = 'running' then ${isAliveSql("g.holder")} else false end as alive,
            g.answer_until <= now() as answer_over,
            g.forget_at <= now() as forgotten
       from ${tableName(deps.schema)} g
      where (g.scope = $1 and g.principal = $2 and g.id = $3)
         or g.auth_hash = $4
      order by same_id desc
      limit 1`,
    [scope, principal, id, authHash],
  );
  return found.rows[0] ?? null;
}

// What has no end yet may end nobody knows how, and then stays known for as long as anybody would
// still come back for it: the longest replay window that a provider documents (Stripe v2).
const DOUBT_MS = 30 * 86_400_000;

async function insertClaim(
  deps: StoreDeps,
  arrival: Arrival,
  answerMs: number,
): Promise<Claim | null> {
  const attempt = randomUUID();
  const { scope, principal, id, fingerprint, authHash } = arrival;
  const made = await deps.pool.query(
    `insert into ${tableName(deps.schema)}
            (scope, principal, id, fingerprint, auth_hash, state, attempt, holder,
             answer_until, forget_at)
     values ($1, $2, $3, $4, $5, 'running', $6, $7,
             now() + $8 * interval '1 millisecond', now() + $9 * interval '1 millisecond')
         on conflict do nothing`,
    [
      ...[scope, principal, id, fingerprint, authHash, attempt, await deps.session.holder()],
      ...[answerMs, DOUBT_MS],
    ],
  );
  return made.rowCount === 1 ? { arrival, attempt, wasUnknown: false } : null;
}

/**
 * An identifier outlives its authorization's window: a resend must not look like a new purchase.
 */
function forgetMs(arrival: Arrival, keeping: Keeping): number {
  if (arrival.authHash === null) return keeping.answerMs;
  return Math.max(keeping.answerMs, keeping.authorizationMs);
}

async function takeOver(deps: StoreDeps, arrival: Arrival, row: Row): Promise<Claim | null> {
  const attempt = randomUUID();
  const taken = await deps.pool.query(
    `update ${tableName(deps.schema)}
        set state = 'running',
            attempt = $2,
            holder = $3,
            was_unknown = true
      where attempt = $1
        and state = $4`,
    [row.attempt, attempt, await deps.session.holder(), row.state],
  );
  return taken.rowCount === 1 ? { arrival, attempt, wasUnknown: true } : null;
}

/**
 * Stores the answer of a run, from whose end on it is kept. An answer that is certain also beats
 * the unknown that others made of this row; it never beats another answer.
 */
export async function storeAnswer(
  deps: StoreDeps,
  claim: Claim,
  input: { readonly answer: Answer; readonly keeping: Keeping },
): Promise<void> {
  const { arrival } = claim;
  const { answer, keeping } = input;
  await deps.pool.query(
    `update ${tableName(deps.schema)}
        set state = 'done',
            status = $5,
            headers = $6::jsonb,
            body = $7,
            ended_at = now(),
            answer_until = now() + $8 * interval '1 millisecond',
            forget_at = now() + $9 * interval '1 millisecond'
      where scope = $1
        and principal = $2
        and id = $3
        and fingerprint = $4
        and state <> 'done'`,
    [
      ...[arrival.scope, arrival.principal, arrival.id, arrival.fingerprint],
      ...[answer.status, JSON.stringify(answer.headers), answer.body],
      ...[keeping.answerMs, forgetMs(arrival, keeping)],
    ],
  );
}

/** The run ended and nobody knows how. */
export async function storeUnknown(deps: StoreDeps, claim: Claim): Promise<void> {
  await deps.pool.query(
    `update ${tableName(deps.schema)}
        set state = 'unknown',
            ended_at = now()
      where attempt = $1
        and state = 'running'`,
    [claim.attempt],
  );
}

/** The run did nothing: it leaves no trace, unless an earlier one left its question. */
export async function dropClaim(deps: StoreDeps, claim: Claim): Promise<void> {
  if (claim.wasUnknown) await storeUnknown(deps, claim);
  else await dropAttempt(deps, claim.attempt);
}

async function dropAttempt(deps: StoreDeps, attempt: string): Promise<void> {
  await deps.pool.query(`delete from ${tableName(deps.schema)} where attempt = $1`, [attempt]);
}

/** Forgets a request whose end a person has looked up. `false`: there is none in doubt. */
export async function forgetUnknown(
  deps: Pick<StoreDeps, "pool" | "schema">,
  name: Pick<Arrival, "scope" | "principal" | "id">,
): Promise<boolean> {
  const gone = await deps.pool.query(
    `delete from ${tableName(deps.schema)} g
      where g.scope = $1
        and g.principal = $2
        and g.id = $3
        and (g.state = 'unknown' or (g.state = 'running' and not ${isAliveSql("g.holder")}))`,
    [name.scope, name.principal, name.id],
  );
  return gone.rowCount === 1;
}

// One pass holds its locks for well below a second; what is left waits for the next.
const PURGE_ROWS_MAX = 5_000;

/** Deletes rows past their time and drops answers past theirs; gives how many of both. */
export async function purgeRows(deps: Pick<StoreDeps, "pool" | "schema">): Promise<number> {
  const table = tableName(deps.schema);
  const gone = await deps.pool.query(
    `delete from ${table}
      where attempt in (
            select g.attempt
              from ${table} g
             where g.forget_at <= now()
               and not (g.state = 'running' and ${isAliveSql("g.holder")})
             limit $1)`,
    [PURGE_ROWS_MAX],
  );
  const dropped = await deps.pool.query(
    `update ${table}
        set body = null,
            headers = null
      where attempt in (
            select g.attempt
              from ${table} g
             where g.answer_until <= now()
               and g.body is not null
             limit $1)`,
    [PURGE_ROWS_MAX],
  );
  return (gone.rowCount ?? 0) + (dropped.rowCount ?? 0);
}
