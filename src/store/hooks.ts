/** The one writer of `tallyd.hook`: what is known about each way out. */
import type { Db } from "./pool.ts";

export type HookErrorCode = "rate_limit" | "dead" | "server" | "network";

export interface HookRow {
  readonly channel: string;
  readonly lastOkAt: Date | null;
  /** `null` while healthy. A pause that the other side asked for is no failure. */
  readonly failingSince: Date | null;
  /** In a row. */
  readonly failures: number;
  /** Nothing is sent before; `null`: no pause. */
  readonly pausedUntil: Date | null;
  readonly lastError: string | null;
  readonly lastErrorCode: HookErrorCode | null;
}

/** A way out with what waits for it. */
export interface HookWithWaiting extends HookRow {
  readonly waiting: number;
  /** Messages that may not have arrived. */
  readonly uncertain: number;
  /** Since when the longest due of them waits; in the future: none is due yet. */
  readonly oldestWaitingAt: Date | null;
}

// The CHECK of last_error.
const ERROR_CHARS_MAX = 2_000;

/** What is known about one way out; `null`: it was never used. */
export async function readHook(db: Db, channel: string): Promise<HookRow | null> {
  const found = await db.query<HookRow>(
    `select h.channel, h.last_ok_at as "lastOkAt", h.failing_since as "failingSince", h.failures,
            h.paused_until as "pausedUntil", h.last_error as "lastError",
            h.last_error_code as "lastErrorCode"
       from tallyd.hook h
      where h.channel = $1`,
    [channel],
  );
  return found.rows[0] ?? null;
}

/** Every way out that was used or has something to send. */
export async function readHooks(db: Db): Promise<readonly HookWithWaiting[]> {
  const found = await db.query<HookWithWaiting>(
    `with waiting as (
       select o.channel,
              count(*) filter (where o.status = 'pending')::integer as waiting,
              count(*) filter (where o.status = 'uncertain')::integer as uncertain,
              -- One that waits for company is not late yet.
              min(o.due_at) filter (where o.status = 'pending') as oldest_waiting_at
         from tallyd.outbox o
        where o.status in ('pending', 'uncertain')
        group by o.channel
     )
     select coalesce(h.channel, w.channel) as channel,
            h.last_ok_at as "lastOkAt",
            h.failing_since as "failingSince",
            coalesce(h.failures, 0) as failures,
            h.paused_until as "pausedUntil",
            h.last_error as "lastError",
            h.last_error_code as "lastErrorCode",
            coalesce(w.waiting, 0) as waiting,
            coalesce(w.uncertain, 0) as uncertain,
            w.oldest_waiting_at as "oldestWaitingAt"
       from tallyd.hook h
       full join waiting w on w.channel = h.channel
      order by 1`,
  );
  return found.rows;
}

/** Forgets a way out that is configured no more. */
export async function forgetHook(db: Db, channel: string): Promise<void> {
  await db.query(
    `delete from tallyd.hook
      where channel = $1`,
    [channel],
  );
}

/** Notes that a message arrived. */
export async function markHookOk(db: Db, channel: string, at: Date): Promise<void> {
  await db.query(
    `insert into tallyd.hook as h (channel, last_ok_at, last_try_at)
     values ($1, $2, $2)
         on conflict (channel) do update
        set last_ok_at = excluded.last_ok_at,
            last_try_at = excluded.last_try_at,
            failing_since = null,
            failures = 0,
            paused_until = null,
            last_error = null,
            last_error_code = null`,
    [channel, at],
  );
}

/** Notes a pause, and a failure unless the other side only asked to wait. */
export async function markHookPaused(
  db: Db,
  pause: {
    readonly channel: string;
    readonly at: Date;
    readonly until: Date;
    readonly code: HookErrorCode;
    readonly error: string;
  },
): Promise<void> {
  await db.query(
    `insert into tallyd.hook as h
            (channel, last_try_at, failing_since, failures, paused_until, last_error,
             last_error_code)
     values ($1, $2, case when $4 = 'rate_limit' then null else $2::timestamptz end,
             case when $4 = 'rate_limit' then 0 else 1 end, $3, $5, $4)
         on conflict (channel) do update
        set last_try_at = excluded.last_try_at,
            failing_since = coalesce(h.failing_since, excluded.failing_since),
            failures = h.failures + excluded.failures,
            paused_until = excluded.paused_until,
            last_error = excluded.last_error,
            last_error_code = excluded.last_error_code`,
    [pause.channel, pause.at, pause.until, pause.code, pause.error.slice(0, ERROR_CHARS_MAX)],
  );
}
