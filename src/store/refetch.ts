/**
 * `tallyd.refetch`: objects that must be read by id, because their shape is not known, because they
 * contradict themselves, or because only their name is known. Whoever fetches claims rows, calls
 * the provider outside of any transaction, and reports what became of it.
 */
import { quarantineEvents } from "./inbox.ts";
import type { Db } from "./pool.ts";

/** An object to fetch. */
export interface RefetchRequest {
  readonly scope: string;
  readonly objectId: string;
  readonly reason: string;
}

/** A claimed row. */
export interface ClaimedRefetch extends RefetchRequest {
  readonly attempts: number;
  /** When the object was first asked for. */
  readonly firstAt: Date;
}

/** Names one row. */
export interface RefetchKey {
  readonly scope: string;
  readonly objectId: string;
}

// Fresh negatives turn within seconds (case B23), outages within hours: pauses double from two
// seconds to an hour, so that twelve attempts reach over an hour past the first.
const ATTEMPTS_MAX = 12;
const PAUSE_FIRST_MS = 2_000;
const PAUSE_MAX_MS = 3_600_000;
// Longer than the slowest fetch (80 s a try, with retries): a row whose fetcher died comes back.
const CLAIM_MS = 300_000;
const REASON_MAX = 200;
const ERROR_MAX = 2_000;

/**
 * Asks for objects to be fetched. An object that waits already stays where it is in its ladder; one
 * that was given up (missing, dead) starts anew, because something new was said about it.
 */
export async function requestRefetch(
  tx: Db,
  input: { readonly requests: readonly RefetchRequest[]; readonly now: Date },
): Promise<void> {
  const requests = new Map(
    input.requests.map((request) => [`${request.scope}\u0000${request.objectId}`, request]),
  );
  if (requests.size === 0) return;
  await tx.query(
    `insert into tallyd.refetch as stored (scope, object_id, reason, due_at, first_at)
     select scope, object_id, reason, $2, $2
       from jsonb_to_recordset($1::jsonb) as given (scope text, object_id text, reason text)
      order by scope collate "C", object_id collate "C"
         on conflict (scope, object_id)
            do update
                  set status = 'pending',
                      reason = excluded.reason,
                      attempts = 0,
                      due_at = excluded.due_at,
                      first_at = excluded.first_at
                where stored.status <> 'pending'`,
    [
      JSON.stringify(
        [...requests.values()].map((request) => ({
          scope: request.scope,
          object_id: request.objectId,
          reason: request.reason.slice(0, REASON_MAX),
        })),
      ),
      input.now,
    ],
  );
}

/**
 * Takes due rows and puts them off for as long as a fetch may take, in a statement of its own: no
 * transaction stays open during the fetch, and a fetcher that dies loses nothing. `scope` null
 * takes rows of every scope.
 */
export async function claimRefetches(
  db: Db,
  input: { readonly scope: string | null; readonly now: Date; readonly limit: number },
): Promise<ClaimedRefetch[]> {
  const result = await db.query<ClaimedRefetch>(
    `update tallyd.refetch as stored
        set due_at = $2::timestamptz + $4 * interval '1 millisecond'
       from (select scope, object_id
               from tallyd.refetch
              where status = 'pending'
                and due_at <= $2
                and ($1::text is null or scope = $1)
              order by due_at
              limit $3
                for update skip locked) as due
      where stored.scope = due.scope
        and stored.object_id = due.object_id
     returning stored.scope, stored.object_id as "objectId", stored.reason, stored.attempts,
               stored.first_at as "firstAt"`,
    [input.scope, input.now, input.limit, CLAIM_MS],
  );
  return result.rows;
}

/** Removes rows whose object was read, in the transaction that applied it. */
export async function finishRefetches(tx: Db, keys: readonly RefetchKey[]): Promise<void> {
  if (keys.length === 0) return;
  await tx.query(
    `delete from tallyd.refetch as stored
      using jsonb_to_recordset($1::jsonb) as given (scope text, "objectId" text)
      where stored.scope = given.scope
        and stored.object_id = given."objectId"`,
    [JSON.stringify(keys.map(({ scope, objectId }) => ({ scope, objectId })))],
  );
}

/**
 * Notes a fetch that gave nothing to believe. The row waits longer each time; after the last
 * attempt it is `dead` and the events that hoped for it are quarantined. Run it in a transaction.
 */
export async function failRefetch(
  tx: Db,
  input: RefetchKey & { readonly error: string; readonly now: Date },
): Promise<"pending" | "dead"> {
  const result = await tx.query<{ status: "pending" | "dead" }>(
    `update tallyd.refetch
        set attempts = attempts + 1,
            status = case when attempts + 1 >= $5 then 'dead' else 'pending' end,
            due_at = $4::timestamptz + least($7::float8, $6 * power(2, least(attempts, 30)))
                     * interval '1 millisecond',
            last_error = $3
      where scope = $1
        and object_id = $2
     returning status`,
    [
      input.scope,
      input.objectId,
      input.error.slice(0, ERROR_MAX),
      input.now,
      ATTEMPTS_MAX,
      PAUSE_FIRST_MS,
      PAUSE_MAX_MS,
    ],
  );
  const status = result.rows[0]?.status ?? "pending";
  if (status === "dead") await quarantineEvents(tx, input);
  return status;
}

/**
 * Puts rows off without counting an attempt: the provider could not be asked at all (rate limit,
 * network, refused key), which says nothing about the object.
 */
export async function postponeRefetches(
  db: Db,
  input: { readonly keys: readonly RefetchKey[]; readonly until: Date; readonly error: string },
): Promise<void> {
  await db.query(
    `update tallyd.refetch as stored
        set due_at = $2,
            last_error = $3
       from jsonb_to_recordset($1::jsonb) as given (scope text, "objectId" text)
      where stored.scope = given.scope
        and stored.object_id = given."objectId"`,
    [
      JSON.stringify(input.keys.map(({ scope, objectId }) => ({ scope, objectId }))),
      input.until,
      input.error.slice(0, ERROR_MAX),
    ],
  );
}

/** The provider denies the id past the grace period: the row stays as a fact and is not fetched. */
export async function markRefetchMissing(
  tx: Db,
  input: RefetchKey & { readonly error: string },
): Promise<void> {
  await tx.query(
    `update tallyd.refetch
        set status = 'missing',
            attempts = attempts + 1,
            last_error = $3
      where scope = $1
        and object_id = $2`,
    [input.scope, input.objectId, input.error.slice(0, ERROR_MAX)],
  );
}
