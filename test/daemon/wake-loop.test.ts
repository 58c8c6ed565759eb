/** Goal: a loop that is woken at once, never runs twice at a time and survives its errors. */
import { setTimeout as sleep } from "node:timers/promises";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/log.ts";
import { sharesSessions } from "../../src/daemon/pooler.ts";
import { openWakeChannel } from "../../src/daemon/wake-channel.ts";
import { createWakeLoop } from "../../src/daemon/wake-loop.ts";
import type { LoopWork } from "../../src/daemon/wake-loop.ts";
import { createTestDb } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";

let db: TestDb;
beforeAll(async () => {
  db = await createTestDb({ template: "empty" });
});
afterAll(async () => {
  await db.close();
});

const NEVER_MS = 60_000;
const loopOf = (work: LoopWork, tickMs = NEVER_MS) =>
  createWakeLoop({ log: silentLog, clock: systemClock }, { name: "test", tickMs, work });

describe("createWakeLoop", () => {
  it("default: runs at the start, at each wake, and at its own beat", async () => {
    let runs = 0;
    const loop = loopOf(() => {
      runs += 1;
      return Promise.resolve(false);
    });
    loop.start();
    await expect.poll(() => runs).toBe(1);
    loop.wake();
    await expect.poll(() => runs).toBe(2);
    await loop.stop(1_000);
    loop.wake();
    await sleep(20);
    expect(runs).toBe(2);
  });

  it("behavior: a hundred wakes during a run cause one more run, and none overlaps", async () => {
    let [runs, active, most] = [0, 0, 0];
    const loop = loopOf(async () => {
      runs += 1;
      active += 1;
      most = Math.max(most, active);
      await sleep(30);
      active -= 1;
      return false;
    });
    loop.start();
    await sleep(5);
    for (let wake = 0; wake < 100; wake += 1) loop.wake();
    await sleep(120);
    expect({ runs, most }).toEqual({ runs: 2, most: 1 });
    await loop.stop(1_000);
  });

  it("behavior: a full batch goes on at once", async () => {
    let runs = 0;
    const loop = loopOf(() => Promise.resolve((runs += 1) < 5));
    loop.start();
    await expect.poll(() => runs).toBe(5);
    await loop.stop(1_000);
  });

  it("error: failures are waited out, wakes do not hurry them, success ends them", async () => {
    let runs = 0;
    const loop = loopOf(() => {
      runs += 1;
      return runs === 1 ? Promise.reject(new Error("no luck")) : Promise.resolve(false);
    });
    loop.start();
    await expect.poll(() => loop.state.failuresInRow).toBe(1);
    for (let wake = 0; wake < 50; wake += 1) loop.wake();
    await sleep(100);
    expect(runs).toBe(1);
    await expect.poll(() => loop.state.failuresInRow).toBe(0);
    expect(loop.state).toMatchObject({ failures: 1, lastError: null });
    await loop.stop(1_000);
  });

  it("behavior: stop aborts a run that goes on past its grace", async () => {
    const loop = loopOf((signal) => sleep(NEVER_MS, false, { signal }));
    loop.start();
    await sleep(10);
    const began = performance.now();
    await loop.stop(50);
    expect(performance.now() - began).toBeLessThan(1_000);
  });
});

describe("openWakeChannel", () => {
  it("default: wakes the other replicas, also after its connection was lost", async () => {
    const heard = { a: 0, b: 0 };
    const channel = (replica: "a" | "b") =>
      openWakeChannel({ pool: db.pool, log: silentLog, replica }, () => (heard[replica] += 1));
    const [a, b] = [channel("a"), channel("b")];
    // Once each for the connection itself.
    await expect.poll(() => heard).toEqual({ a: 1, b: 1 });
    await a.notify();
    await expect.poll(() => heard).toEqual({ a: 1, b: 2 });
    await db.pool.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen%'",
    );
    await expect.poll(() => heard, { timeout: 8_000 }).toEqual({ a: 2, b: 3 });
    await a.notify();
    await expect.poll(() => heard).toEqual({ a: 2, b: 4 });
    a.close();
    b.close();
  });
});

describe("sharesSessions", () => {
  it("default: PostgreSQL itself gives every connection a session", async () => {
    expect(await sharesSessions(db.pool)).toBe(false);
  });

  it("behavior: a pooler that multiplexes is noticed", async () => {
    // What a pooler in transaction mode does: two clients, one server connection.
    const server = await db.pool.connect();
    const session = {
      query: (text: string) => server.query<{ pid: number }>(text),
      release: () => {},
    };
    expect(await sharesSessions({ connect: () => Promise.resolve(session) })).toBe(true);
    server.release();
  });
});
