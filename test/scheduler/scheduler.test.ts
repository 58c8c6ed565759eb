/**
 * Goal: one run per tick whatever happens (case B43). Method: real node-cron, real PostgreSQL, two
 * replicas as two schedulers with lock sessions of their own, a clock that the test moves.
 */
import { setTimeout as sleep } from "node:timers/promises";

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { systemClock } from "../../src/core/clock.ts";
import type { Clock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/log.ts";
import { jobHealth } from "../../src/scheduler/health.ts";
import { createJobRunner } from "../../src/scheduler/job-runner.ts";
import type { Job } from "../../src/scheduler/job.ts";
import { createLockSession } from "../../src/scheduler/lock-session.ts";
import { createScheduler } from "../../src/scheduler/scheduler.ts";
import { pruneJobRuns } from "../../src/store/job-runs.ts";
import { createTestDb } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";

type Work = (signal: AbortSignal) => Promise<void>;

let db: TestDb;

beforeAll(async () => {
  db = await createTestDb();
});
afterAll(async () => {
  await db.close();
});
beforeEach(async () => {
  await db.pool.query("delete from tallyd.job_run");
});

function job(work: Work, everyMs = 300_000, timeoutMs = 60_000): Job<null> {
  return {
    name: "sample",
    schedule: { everyMs },
    timeoutMs,
    runs: "cluster",
    runOnce: async (_deps, signal) => {
      await work(signal);
      return { seen: 1 };
    },
  };
}

/** One replica: a runner with a lock session of its own. */
function replica(name: string, of: Job<null>, clock: Clock = systemClock) {
  const locks = createLockSession(db.pool, () => {
    runner.abort("the database connection was lost");
  });
  const base = { pool: db.pool, locks, clock, log: silentLog, replica: name };
  const runner = createJobRunner(base, of, null);
  const tick = async (at: Date): Promise<boolean> => {
    const won = await runner.elect(at);
    if (won) await runner.run();
    return won;
  };
  return { base, runner, tick, locks };
}

async function rows() {
  const found = await db.pool.query<{ replica: string; finished: boolean; error: string | null }>(
    `select replica, finished_at is not null as finished, error
       from tallyd.job_run
      order by tick_at`,
  );
  return found.rows;
}

const NOON = new Date("2026-05-04T12:00:00Z");
const at = (minutes: number): Date => new Date(NOON.getTime() + minutes * 60_000);

describe("two replicas", () => {
  it("default: one of them runs a tick, whoever asks first", async () => {
    let runs = 0;
    const work: Work = async () => {
      runs += 1;
      await sleep(5);
    };
    const a = replica("a", job(work));
    const b = replica("b", job(work));
    for (let tick = 0; tick < 10; tick += 1) {
      const won = await Promise.all([a.tick(at(5 * tick)), b.tick(at(5 * tick))]);
      expect(won.filter(Boolean)).toHaveLength(1);
    }
    expect(runs).toBe(10);
    expect((await rows()).every((row) => row.finished && row.error === null)).toBe(true);
    await Promise.all([a.locks.close(), b.locks.close()]);
  });

  it("behavior: a long run on one replica keeps the other from starting the next tick", async () => {
    let end = (): void => undefined;
    const first = replica(
      "a",
      job(() => new Promise((resolve) => (end = resolve))),
    );
    const second = replica(
      "b",
      job(() => Promise.resolve()),
    );
    const long = first.tick(at(0));
    await untilRunning(first);
    expect(await second.tick(at(5))).toBe(false);
    end();
    await long;
    expect(await second.tick(at(5))).toBe(true);
    await Promise.all([first.locks.close(), second.locks.close()]);
  });

  it("behavior: the work of a replica whose connection dies is free, and it stops", async () => {
    const doomed = replica(
      "a",
      job((signal) => aborted(signal)),
    );
    const run = doomed.tick(at(0));
    await untilRunning(doomed);
    const heir = replica(
      "b",
      job(() => Promise.resolve()),
    );
    expect(await heir.tick(at(0))).toBe(false);
    await db.pool.query(
      `select pg_terminate_backend(l.pid)
         from pg_locks l
        where l.locktype = 'advisory'
          and l.granted
          and l.database = (select oid from pg_database where datname = current_database())`,
    );
    await run;
    expect(doomed.runner.stats.failures).toBe(1);
    // The server says good-bye a moment before it frees the locks.
    await expect.poll(() => heir.tick(at(0))).toBe(true);
    expect(await rows()).toEqual([{ replica: "b", finished: true, error: null }]);
    await Promise.all([doomed.locks.close(), heir.locks.close()]);
  });

  it("behavior: an unfinished row of a dead replica is taken over", async () => {
    await db.pool.query(
      "insert into tallyd.job_run (job, tick_at, replica, started_at) values ('sample', $1, 'x', $1)",
      [at(0)],
    );
    const heir = replica(
      "b",
      job(() => Promise.resolve()),
    );
    expect(await heir.tick(at(1))).toBe(true);
    expect(await rows()).toEqual([{ replica: "b", finished: true, error: null }]);
    await heir.locks.close();
  });
});

describe("one replica", () => {
  it("behavior: ticks during a run are skipped and counted once each", async () => {
    let end = (): void => undefined;
    const one = replica(
      "a",
      job(() => new Promise((resolve) => (end = resolve))),
    );
    const run = one.tick(at(0));
    await untilRunning(one);
    // The run takes 12 minutes: ticks at 5 and 10 are skipped (case B43).
    for (const minute of [5, 6, 7, 10, 11]) expect(await one.tick(at(minute))).toBe(false);
    expect(one.runner.stats.overlaps).toBe(2);
    end();
    await run;
    const next = one.tick(at(15));
    await untilRunning(one);
    end();
    expect(await next).toBe(true);
    await one.locks.close();
  });

  it("behavior: a window is run once, however often its slots come", async () => {
    const one = replica(
      "a",
      job(() => Promise.resolve()),
    );
    const won = [];
    for (const minute of [0, 1, 2, 4, 5, 6]) won.push(await one.tick(at(minute)));
    expect(won).toEqual([true, false, false, false, true, false]);
    await one.locks.close();
  });

  it("behavior: a clock that is set back an hour does not stop the job for that hour", async () => {
    const one = replica(
      "a",
      job(() => Promise.resolve()),
    );
    for (const minute of [0, 5, 10, 15, 20, 60]) await one.tick(at(minute));
    // What stays blocked is the tick that did run at that time, and no other.
    const won = [];
    for (const minute of [0, 5, 10, 15]) won.push(await one.tick(at(minute)));
    expect(won.slice(2)).toEqual([true, true]);
    await one.locks.close();
  });

  it("error: a failing job is recorded and tried at the next tick", async () => {
    let fail = true;
    const one = replica(
      "a",
      job(() => (fail ? Promise.reject(new Error("no luck")) : Promise.resolve())),
    );
    await one.tick(at(0));
    fail = false;
    await one.tick(at(5));
    expect((await rows()).map((row) => row.error)).toEqual(["no luck", null]);
    expect(one.runner.stats).toMatchObject({ runs: 2, failures: 1, lastError: null });
    await one.locks.close();
  });

  it("error: the time-out aborts the run", async () => {
    const one = replica(
      "a",
      job((signal) => aborted(signal), 300_000, 30),
    );
    await one.tick(at(0));
    expect(one.runner.stats.timeouts).toBe(1);
    expect((await rows())[0]?.error).toBe("time-out after 30 ms");
    await one.locks.close();
  });
});

describe("createScheduler", () => {
  it("default: two schedulers on one database run each second once", async () => {
    const seen: string[] = [];
    const slowTick = job(() => {
      seen.push(new Date().toISOString().slice(0, 19));
      return Promise.resolve();
    }, 1_000);
    const made = ["a", "b"].map((name) => {
      const { base, locks } = replica(name, slowTick);
      return { scheduler: createScheduler(base, [slowTick], null), locks };
    });
    for (const { scheduler } of made) scheduler.start();
    await sleep(3_300);
    await Promise.all(made.map(({ scheduler }) => scheduler.stop(1_000)));
    expect(seen.length).toBeGreaterThanOrEqual(3);
    expect(new Set(seen).size).toBe(seen.length);
    await Promise.all(made.map(({ locks }) => locks.close()));
  });

  it("behavior: the first start runs what is due, a second start does not repeat it", async () => {
    let runs = 0;
    const slow = job(() => {
      runs += 1;
      return Promise.resolve();
    }, 86_400_000);
    for (const name of ["a", "b"]) {
      const { base, locks } = replica(name, slow);
      const scheduler = createScheduler(base, [slow], null);
      scheduler.start();
      await sleep(200);
      await scheduler.stop(1_000);
      await locks.close();
    }
    expect(runs).toBe(1);
  });

  it("behavior: after a jump of the clock every job runs once", async () => {
    let shiftMs = 0;
    const clock: Clock = { now: () => new Date(systemClock.now().getTime() + shiftMs) };
    let runs = 0;
    const slow = job(() => {
      runs += 1;
      return Promise.resolve();
    }, 300_000);
    const { base, locks } = replica("a", slow, clock);
    const scheduler = createScheduler(base, [slow], null, { watchMs: 50, jumpMinMs: 30_000 });
    scheduler.start();
    try {
      // A busy machine takes its time; what is too much shows after a while of quiet.
      await expect.poll(() => runs, { timeout: 20_000 }).toBe(1);
      shiftMs = 2 * 3_600_000;
      await expect.poll(() => runs, { timeout: 20_000 }).toBe(2);
      await sleep(250);
      expect(runs).toBe(2);
    } finally {
      await scheduler.stop(1_000);
      await locks.close();
    }
  });

  it("behavior: stop gives unfinished work back", async () => {
    const endless = job((signal) => aborted(signal));
    const { base, locks } = replica("a", endless);
    const scheduler = createScheduler(base, [endless], null);
    scheduler.start();
    await expect.poll(rows).toEqual([{ replica: "a", finished: false, error: null }]);
    await scheduler.stop(20);
    expect(await rows()).toEqual([]);
    await locks.close();
  });
});

describe("records", () => {
  it("behavior: a job without a success for three periods is unhealthy", async () => {
    const clock = { now: () => at(60) };
    const jobs = [job(() => Promise.resolve())];
    const health = () => jobHealth({ db: db.pool, clock }, jobs, at(0));
    const insert = (minute: number, error: string | null) =>
      db.pool.query(
        `insert into tallyd.job_run (job, tick_at, replica, started_at, finished_at, error)
         values ('sample', $1, 'a', $1, $1, $2)`,
        [at(minute), error],
      );
    expect(await health()).toHaveLength(1);
    await insert(40, null);
    await insert(55, "no luck");
    expect(await health()).toEqual([
      { job: "sample", lastOkAt: at(40), periodsMissed: 4, lastError: "no luck" },
    ]);
    await insert(50, null);
    expect(await health()).toEqual([]);
  });

  it("behavior: pruning keeps the newest success", async () => {
    await db.pool.query(
      `insert into tallyd.job_run (job, tick_at, replica, started_at, finished_at, error)
       select 'sample', t, 'a', t, t, case when n > 3 then 'no luck' end
         from generate_series(1, 6) as n
        cross join lateral (select $1::timestamptz + n * interval '5 min' as t) as at`,
      [NOON],
    );
    await pruneJobRuns(db.pool, at(1_000));
    const left = await db.pool.query<{ tick_at: Date }>(
      "select tick_at from tallyd.job_run order by tick_at",
    );
    expect(left.rows.map((row) => row.tick_at)).toEqual([at(15), at(30)]);
  });
});

async function untilRunning(one: ReturnType<typeof replica>): Promise<void> {
  await expect.poll(() => one.runner.stats.running).toBe(true);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => {
      reject(signal.reason instanceof Error ? signal.reason : new Error("aborted"));
    });
  });
}
