/**
 * `tallyd.inbox`: received and swept events. An event is "seen" only once it is done; until then a
 * redelivery puts it back to work (case B15).
 */
import type { Db } from "./pool.ts";

/** An event to store. */
export interface InboxEvent {
  readonly scope: string;
  readonly eventId: string;
  readonly type: string;
  readonly apiVersion: string | null;
  readonly createdAt: Date;
  readonly objectId: string | null;
  readonly objectType: string | null;
  readonly idempotencyKey: string | null;
  readonly requestId: string | null;
  /** JSON text of what was read of it; null: the event is remembered and never applied. */
  readonly body: string | null;
  /** Only named its object; the twin that carries the object replaces it. */
  readonly thin: boolean;
  /** Nothing can be made of it, not even by a fetch: it is dead at once; null otherwise. */
  readonly hopeless: string | null;
}

/** A claimed event. */
export interface ClaimedEvent {
  readonly scope: string;
  readonly eventId: string;
  readonly type: string;
  readonly apiVersion: string | null;
  readonly objectId: string | null;
  /** What `body` held, parsed. */
  readonly body: unknown;
  readonly attempts: number;
}

/** Names one event. */
export interface EventKey {
  readonly scope: string;
  readonly eventId: string;
}

// A poison event is tried for about two hours (below), which outlives a deployment that broke it
// and its repair, and then waits for a person.
const ATTEMPTS_MAX = 10;
// Pauses double from five seconds to half an hour.
const PAUSE_FIRST_MS = 5_000;
const PAUSE_MAX_MS = 1_800_000;
// Stripe resends an event by hand for up to 30 days (process-undelivered-events), and the events
// list goes as far back; the rest is slack for a queue in between.
const BODY_KEPT_MS = 45 * 24 * 3_600_000;
// So many rows are pruned by one statement: short enough to hold no lock that anybody notices.
const PRUNE_ROWS_MAX = 5_000;
const ERROR_MAX = 2_000;

/** Text that names one event among others. */
export function eventKey(event: EventKey): string {
  return `${event.scope}\u0000${event.eventId}`;
}

interface Arrival {
  readonly event: InboxEvent;
  deliveries: number;
}

/**
 * Stores a batch of events in one statement, once each however often they are in it, and returns
 * the keys (see {@link eventKey}) of those that were new. `via: 'sweep'` leaves known events as
 * they are; a webhook counts as one more delivery and wakes an event that failed before.
 */
export async function insertEvents(
  db: Db,
  input: {
    readonly events: readonly InboxEvent[];
    readonly via: "webhook" | "sweep";
    readonly now: Date;
  },
): Promise<ReadonlySet<string>> {
  const arrivals = joinArrivals(input.events);
  if (arrivals.length === 0) return new Set();
  const result = await db.query<{ scope: string; event_id: string; is_new: boolean }>(
    INSERT_EVENTS,
    [JSON.stringify(arrivals.map(arrivalRow)), input.via, input.now],
  );
  const fresh = result.rows.filter((row) => row.is_new);
  return new Set(fresh.map((row) => eventKey({ scope: row.scope, eventId: row.event_id })));
}

// A thin event that was stored first gives way to the twin that carries the object.
const INSERT_EVENTS = `
insert into tallyd.inbox as stored
       (scope, event_id, type, api_version, created_at, object_id, object_type, idempotency_key,
        request_id, body, via, webhook_at, received_at, deliveries, status, next_at, last_error,
        done_at)
select scope, event_id, type, api_version, created_at, object_id, object_type, idempotency_key,
       request_id, body::jsonb, $2, case when $2 = 'webhook' then $3::timestamptz end, $3,
       deliveries,
       status, $3, last_error, case when status <> 'pending' then $3::timestamptz end
  from jsonb_to_recordset($1::jsonb)
    as given (scope text, event_id text, type text, api_version text, created_at timestamptz,
              object_id text, object_type text, idempotency_key text, request_id text, body text,
              deliveries integer, status text, last_error text, thin boolean)
 order by scope collate "C", event_id collate "C"
    on conflict (scope, event_id)
       do update
             set deliveries = stored.deliveries
                   + case when $2 = 'webhook' then excluded.deliveries else 0 end,
                 webhook_at = coalesce(stored.webhook_at, excluded.webhook_at),
                 type = case when stored.type ~ '^v[0-9]+\\.' then excluded.type
                             else stored.type end,
                 api_version = coalesce(stored.api_version, excluded.api_version),
                 body = case when stored.type ~ '^v[0-9]+\\.' and excluded.type !~ '^v[0-9]+\\.'
                             then excluded.body else stored.body end,
                 status = case when stored.type ~ '^v[0-9]+\\.' and excluded.type !~ '^v[0-9]+\\.'
                               then excluded.status
                               when stored.status = 'dead' and stored.body is not null
                               then 'error' else stored.status end,
                 next_at = case when stored.status in ('error', 'dead') then $3
                                else stored.next_at end
           where $2 = 'webhook'
              or (stored.type ~ '^v[0-9]+\\.' and excluded.type !~ '^v[0-9]+\\.')
returning scope, event_id, (xmax = 0) as is_new`;

function joinArrivals(events: readonly InboxEvent[]): Arrival[] {
  const arrivals = new Map<string, Arrival>();
  for (const event of events) {
    const before = arrivals.get(eventKey(event));
    const richer = before === undefined || (before.event.thin && !event.thin);
    arrivals.set(eventKey(event), {
      event: richer ? event : before.event,
      deliveries: (before?.deliveries ?? 0) + 1,
    });
  }
  return [...arrivals.values()];
}

function arrivalRow({ event, deliveries }: Arrival): Record<string, unknown> {
  return {
    scope: event.scope,
    event_id: event.eventId,
    type: event.type,
    api_version: event.apiVersion,
    created_at: event.createdAt,
    object_id: event.objectId,
    object_type: event.objectType,
    idempotency_key: event.idempotencyKey,
    request_id: event.requestId,
    body: event.body,
    deliveries,
    status: event.hopeless !== null ? "dead" : event.body === null ? "ignored" : "pending",
    last_error: event.hopeless === null ? null : withVersion(event.hopeless, event.apiVersion),
  };
}

/** The api_version belongs to every quarantined shape: it says what to teach the reader. */
function withVersion(why: string, apiVersion: string | null): string {
  return `${why} (api_version ${apiVersion ?? "not given"})`.slice(0, ERROR_MAX);
}

/**
 * Claims due events for the caller's transaction; those of another transaction are skipped. `only`
 * claims no other event than that one.
 */
export async function claimEvents(
  tx: Db,
  input: { readonly now: Date; readonly limit: number; readonly only?: EventKey },
): Promise<ClaimedEvent[]> {
  const result = await tx.query<ClaimedEvent>(
    `select scope, event_id as "eventId", type, api_version as "apiVersion",
            object_id as "objectId", body, attempts
       from tallyd.inbox
      where status in ('pending', 'error')
        and next_at <= $1
        and ($3::text is null or (scope = $3 and event_id = $4))
      order by next_at
      limit $2
        for update skip locked`,
    [input.now, input.limit, input.only?.scope ?? null, input.only?.eventId ?? null],
  );
  return result.rows;
}

/** Marks claimed events as done, in the transaction that applied them. */
export async function finishEvents(
  tx: Db,
  input: { readonly events: readonly EventKey[]; readonly now: Date },
): Promise<void> {
  await tx.query(
    `update tallyd.inbox as stored
        set status = 'done',
            attempts = stored.attempts + 1,
            last_error = null,
            done_at = $2
       from jsonb_to_recordset($1::jsonb) as given (scope text, "eventId" text)
      where stored.scope = given.scope
        and stored.event_id = given."eventId"`,
    [JSON.stringify(input.events.map(({ scope, eventId }) => ({ scope, eventId }))), input.now],
  );
}

/** Notes a failed attempt: the event waits longer each time and is dead after the last one. */
export async function failEvent(
  db: Db,
  input: EventKey & { readonly error: string; readonly now: Date },
): Promise<"error" | "dead"> {
  const result = await db.query<{ status: "error" | "dead" }>(
    `update tallyd.inbox
        set attempts = attempts + 1,
            status = case when attempts + 1 >= $5 then 'dead' else 'error' end,
            next_at = $4::timestamptz + least($7::float8, $6 * power(2, least(attempts, 30)))
                      * interval '1 millisecond',
            last_error = left($3 || ' (api_version ' || coalesce(api_version, 'not given') || ')',
                              2000)
      where scope = $1
        and event_id = $2
     returning status`,
    [
      input.scope,
      input.eventId,
      input.error,
      input.now,
      ATTEMPTS_MAX,
      PAUSE_FIRST_MS,
      PAUSE_MAX_MS,
    ],
  );
  return result.rows[0]?.status ?? "error";
}

/**
 * Quarantines the events of an object that could not be read, nor fetched in a shape that can be:
 * they are dead, with their api_version in the error (case B22). Returns how many.
 */
export async function quarantineEvents(
  tx: Db,
  input: { readonly scope: string; readonly objectId: string; readonly error: string },
): Promise<number> {
  const result = await tx.query(
    `update tallyd.inbox
        set status = 'dead',
            last_error = left($3 || ' (api_version ' || coalesce(api_version, 'not given') || ')',
                              2000)
      where scope = $1
        and object_id = $2
        and status = 'done'
        and body -> 'refetch' @> jsonb_build_array(jsonb_build_object('id', $2::text))`,
    [input.scope, input.objectId, input.error],
  );
  return result.rowCount ?? 0;
}

/** How many events are due now, counted up to `limit`. */
export async function countDueEvents(
  db: Db,
  input: { readonly now: Date; readonly limit: number },
): Promise<number> {
  const result = await db.query<{ due: bigint }>(
    `select count(*) as due
       from (select 1
               from tallyd.inbox
              where status in ('pending', 'error')
                and next_at <= $1
              limit $2) as due_ones`,
    [input.now, input.limit],
  );
  return Number(result.rows[0]?.due ?? 0n);
}

/**
 * Empties the bodies of settled events older than 45 days and forgets ignored ones of that age.
 * Returns how many rows were pruned; call again while it is not 0.
 */
export async function pruneEvents(db: Db, input: { readonly now: Date }): Promise<number> {
  const before = new Date(input.now.getTime() - BODY_KEPT_MS);
  const emptied = await db.query(
    `update tallyd.inbox
        set body = null
      where (scope, event_id) in (
              select scope, event_id
                from tallyd.inbox
               where received_at < $1
                 and status in ('done', 'dead')
                 and body is not null
               limit $2)`,
    [before, PRUNE_ROWS_MAX],
  );
  const forgotten = await db.query(
    `delete from tallyd.inbox
      where (scope, event_id) in (
              select scope, event_id
                from tallyd.inbox
               where received_at < $1
                 and status = 'ignored'
               limit $2)`,
    [before, PRUNE_ROWS_MAX],
  );
  return (emptied.rowCount ?? 0) + (forgotten.rowCount ?? 0);
}
