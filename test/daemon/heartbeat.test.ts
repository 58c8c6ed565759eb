/**
 * Goal: the dead man's switch is called after a complete healthy pass and never otherwise, and what
 * it answers hurts nobody. Method: a real daemon on stand-ins, a real receiver of the calls.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { silentLog } from "../../src/core/log.ts";
import type { Log } from "../../src/core/log.ts";
import { passFaults } from "../../src/daemon/complete-pass.ts";
import type { PassDeps } from "../../src/daemon/complete-pass.ts";
import { expectedSources } from "../../src/daemon/expected-sources.ts";
import { createHeartbeat } from "../../src/daemon/heartbeat.ts";
import { createPipeline } from "../../src/daemon/pipeline.ts";
import { startDaemon } from "../../src/daemon/run.ts";
import type { Daemon } from "../../src/daemon/run.ts";
import { startReceiver } from "../../src/sandbox/receiver.ts";
import type { Receiver } from "../../src/sandbox/receiver.ts";
import { timetable } from "../../jobs/timetable.ts";
import { openStage } from "./stage.ts";
import type { TestStage } from "./stage.ts";

let watch: Receiver;
const noSignal = new AbortController().signal;
beforeEach(async () => {
  watch = await startReceiver(() => ({ status: 200, body: "OK" }));
});
afterEach(async () => {
  await watch.close();
});

function statuses(): number[] {
  return watch.control.requests.map(({ status }) => status);
}

describe("a beat", () => {
  const well = () => Promise.resolve([]);

  it("default: one GET of the address as it was given", async () => {
    const heart = createHeartbeat(`${watch.url}/ping/1/?x=1`, { faults: well, log: silentLog });
    expect(await heart.beat(noSignal)).toEqual({ sent: 1, failed: 0, withheld: 0 });
    expect(watch.control.requests).toMatchObject([{ method: "GET", path: "/ping/1/?x=1" }]);
  });

  it("behavior: nothing is called while something is wrong; the reason is logged once", async () => {
    const lines: unknown[] = [];
    const log: Log = { ...silentLog, warn: (text, fields) => lines.push([text, fields]) };
    const faults = () => Promise.resolve(["sources: stripe.events: never"]);
    const heart = createHeartbeat(watch.url, { faults, log });
    await heart.beat(noSignal);
    expect(await heart.beat(noSignal)).toEqual({ sent: 0, failed: 0, withheld: 1 });
    expect(watch.control.requests).toEqual([]);
    expect(lines).toHaveLength(1);
    expect(JSON.stringify(lines)).toContain("stripe.events");
    expect(heart.counts()).toEqual({ sent: 0, failed: 0, withheld: 2 });
  });

  it.each([
    ["redirect", "HTTP 307"],
    [500, "HTTP 500"],
    ["hang", "TimeoutError"],
    ["lost_response", "UND_ERR_SOCKET"],
  ] as const)("behavior: %s is counted and logged without the address", async (mode, reason) => {
    const elsewhere = await startReceiver(() => ({ status: 200, body: "" }));
    watch.control.redirectTo = elsewhere.url;
    watch.control.mode = mode;
    const lines: unknown[] = [];
    const log: Log = { ...silentLog, warn: (text, fields) => lines.push([text, fields]) };
    const heart = createHeartbeat(`${watch.url}/key`, { faults: well, log, timeoutMs: 200 });
    expect(await heart.beat(noSignal)).toEqual({ sent: 0, failed: 1, withheld: 0 });
    expect(JSON.stringify(lines)).toContain(reason);
    expect(JSON.stringify(lines)).not.toContain("/key");
    expect(elsewhere.control.requests).toEqual([]);
    watch.control.mode = "ok";
    expect(await heart.beat(noSignal)).toMatchObject({ sent: 1 });
    await elsewhere.close();
  });
});

describe("the daemon", () => {
  let stage: TestStage;
  let daemon: Daemon;
  let deps: PassDeps;
  beforeEach(async () => {
    stage = await openStage({ LOCAL_BEAT: "1s", HEARTBEAT_URL: `${watch.url}/ping` });
    const tallyd = await stage.open();
    daemon = await startDaemon(tallyd, { version: "0.0.0", routers: [], say: () => {} });
    const jobs = timetable(stage.settings).filter(({ name }) => name !== "heartbeat");
    deps = {
      ...{ pool: stage.pool, startedAt: tallyd.startedAt, jobs },
      ...{ readiness: daemon.readiness, expected: expectedSources(stage.settings) },
      loops: () => new Map(),
    };
  });
  afterEach(async () => {
    await daemon.stop();
    await stage.close();
  });

  const wellWithin = { timeout: 20_000, interval: 100 };

  it("default: the timetable has it, nothing is called at the start, a pass is complete soon", async () => {
    expect(timetable(stage.settings).map(({ name }) => name)).toContain("heartbeat");
    const metrics = async (): Promise<string> => {
      const address = `http://127.0.0.1:${String(daemon.adminPort)}/metrics`;
      return (await fetch(address)).text();
    };
    await expect.poll(metrics, wellWithin).toMatch(/heartbeats_total\{result="\w+"\} 1/);
    await expect.poll(() => passFaults(deps), wellWithin).toEqual([]);
    const heart = createHeartbeat(watch.url, { faults: () => passFaults(deps), log: silentLog });
    const before = statuses().length;
    await heart.beat(noSignal);
    expect(statuses()).toHaveLength(before + 1);
  });

  it("behavior: a loop that neither fails nor ends is a fault after five minutes", async () => {
    const tallyd = await stage.open();
    const faultsAfter = (ms: number) =>
      createPipeline({
        ...tallyd,
        clock: { now: () => new Date(tallyd.startedAt.getTime() + ms) },
      }).faults();
    expect(faultsAfter(299_000)).toEqual([]);
    expect(faultsAfter(301_000)).toEqual([
      expect.stringContaining("judge has not finished since"),
      expect.stringContaining("deliver has not finished since"),
    ]);
    await tallyd.close();
  });

  it("behavior: each thing that is wrong keeps the pass from being healthy", async () => {
    await expect.poll(() => passFaults(deps), wellWithin).toEqual([]);
    const faultsAfter = async (sql: string): Promise<string> => {
      await stage.pool.query(sql);
      return (await passFaults(deps)).join("\n");
    };
    expect(
      await faultsAfter(
        "update tallyd.source set failing_since = now() where source = 'stripe.events'",
      ),
    ).toContain("stripe.events platform/test fails");
    await stage.pool.query("update tallyd.source set failing_since = null");
    expect(
      await faultsAfter(
        `insert into tallyd.hook (channel, failing_since, last_error, last_error_code)
         values ('pagerduty', now(), 'HTTP 400', 'dead')`,
      ),
    ).toContain("alerts: The PagerDuty key");
    await stage.pool.query("delete from tallyd.hook");
    expect(
      await faultsAfter(
        `insert into tallyd.job_run (job, tick_at, replica, started_at, finished_at, error)
         values ('audit', now() + interval '1 hour', 'x', now() + interval '1 hour',
                 now() + interval '1 hour', 'boom')`,
      ),
    ).toContain("audit failed: boom");
    await stage.pool.query("delete from tallyd.job_run where error = 'boom'");
    expect(
      await faultsAfter(
        `insert into tallyd.incident (id, code, subject, severity, status, first_seen, last_seen,
                                      summary, advice)
         values ('inc_0', 'coverage_gap', 'hole:x', 'critical', 'open', now(), now(), 'A hole', '-'),
                ('inc_1', 'config_error', 'skew', 'warning', 'open', now(), now(), 'A clock', '-')`,
      ),
    ).toBe("coverage: inc_0: A hole");
    await stage.pool.query("update tallyd.incident set status = 'muted' where id = 'inc_0'");
    const { ready, checks } = await deps.readiness();
    expect(ready).toBe(true);
    expect(checks.find(({ name }) => name === "coverage")?.reason).toContain("inc_1: A clock");
    await stage.pool.query("delete from tallyd.incident");
    const later = { ...deps, startedAt: new Date(Date.now() + 3_600_000) };
    expect((await passFaults(later)).join()).toContain("judge-sources has not finished since");
    const idle = { runs: 0, failures: 0, failuresInRow: 0, lastOkAt: null, lastError: null };
    const stuck = { ...deps, loops: () => new Map([["judge", idle]]) };
    expect((await passFaults(stuck)).join()).toContain("judge has not run well");
  });
});
