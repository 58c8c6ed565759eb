// Goal: one digest a day, at the configured hour of the configured zone, also when clocks change.
// Method: a real database, times given; what the outbox and Slack's stand-in get.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { tellDay } from "../../src/daemon/daily-digest.ts";
import { onePass } from "../../src/daemon/pass.ts";
import { deliverAlerts } from "../../src/daemon/steps.ts";
import type { Tallyd } from "../../src/daemon/tallyd.ts";
import { databaseNow } from "../../src/store/database-now.ts";
import { emptyTables } from "../support/db.ts";
import { openStage } from "./stage.ts";
import type { TestStage } from "./stage.ts";

const { signal } = new AbortController();

let stage: TestStage;
let tallyd: Tallyd;
beforeAll(async () => {
  stage = await openStage();
  tallyd = await stage.open();
});
afterAll(async () => {
  await tallyd.close();
  await stage.close();
});
beforeEach(async () => {
  await emptyTables(stage.pool, ["tallyd.daily_digest", "tallyd.outbox"]);
  stage.slack.control.clear();
});

function tell(now: Date | string, over: { readonly zone?: string; readonly at?: string } = {}) {
  const { zone = "UTC", at = "09:00" } = over;
  const settings = { ...stage.settings, timeZone: zone, digestAt: at };
  const when = typeof now === "string" ? new Date(now) : now;
  return tellDay({ pool: stage.pool, settings }, when);
}

async function known(day: string): Promise<void> {
  const insert = "insert into tallyd.daily_digest (day, told, made_at) values ($1, true, now())";
  await stage.pool.query(insert, [day]);
}

async function texts(): Promise<string[]> {
  await deliverAlerts(tallyd, { early: false, afterStart: false, signal });
  return stage.slack.control.messages.map((one) => one.text ?? "");
}

describe("when", () => {
  it("default: once a day, at its hour or when tallyd is back", async () => {
    await known("2026-06-01");
    expect(await tell("2026-06-02T08:59:59Z")).toEqual({ digests: 0 });
    expect(await tell("2026-06-02T09:00:00Z")).toEqual({ digests: 1 });
    expect(await tell("2026-06-02T09:01:00Z")).toEqual({ digests: 0 });
    expect(await tell("2026-06-03T17:00:00Z")).toEqual({ digests: 1 });
  });

  it("behavior: a tallyd that is new says nothing of a day it did not watch", async () => {
    expect(await tell("2026-06-02T12:00:00Z")).toEqual({ digests: 0 });
    expect(await tell("2026-06-03T09:00:00Z")).toEqual({ digests: 1 });
  });

  it("behavior: replicas at once write one", async () => {
    await known("2026-06-01");
    const all = await Promise.all([1, 2, 3, 4].map(() => tell("2026-06-02T09:00:00Z")));
    expect(all.filter((one) => one.digests === 1)).toHaveLength(1);
    expect(await texts()).toHaveLength(1);
  });

  it("behavior: an hour that the clocks skip or repeat is one digest", async () => {
    const berlin = { zone: "Europe/Berlin", at: "02:30" };
    await known("2026-03-28");
    expect(await tell("2026-03-29T00:59:00Z", berlin)).toEqual({ digests: 0 });
    expect(await tell("2026-03-29T01:00:00Z", berlin)).toEqual({ digests: 1 });
    await known("2026-10-24");
    expect(await tell("2026-10-25T00:30:00Z", berlin)).toEqual({ digests: 1 });
    expect(await tell("2026-10-25T01:30:00Z", berlin)).toEqual({ digests: 0 });
  });
});

describe("what", () => {
  it("default: a webhook gets the facts, in the shape of the report", async () => {
    await known("2026-06-01");
    const webhook = { url: "http://127.0.0.1:1/", secrets: [] };
    const settings = { ...stage.settings, timeZone: "UTC", digestAt: "09:00", webhook };
    await tellDay({ pool: stage.pool, settings }, new Date("2026-06-02T09:00:00Z"));
    const found = await stage.pool.query<{ payload: { readonly event?: unknown } }>(
      "select payload from tallyd.outbox where channel = 'webhook'",
    );
    expect(found.rows.map((row) => row.payload.event)).toMatchObject([
      {
        type: "digest.daily",
        timestamp: "2026-06-02T09:00:00.000Z",
        data: {
          allClear: false,
          title: expect.stringMatching(/^2026-06-01: NOT everything was read/) as string,
          report: { complete: false, range: { from: "2026-06-01T00:00:00.000Z" } },
        },
      },
    ]);
  });

  it("behavior: what was not read is said first, and it is not all clear", async () => {
    await known("2026-06-01");
    await tell("2026-06-02T09:00:00Z");
    const [text] = await texts();
    expect(text).toMatch(/^2026-06-01: NOT everything was read/);
    expect(text).toContain("tallyd report --from 2026-06-01T00:00:00.000Z");
  });

  it("default: money, rows, decisions, coverage and reads; all clear when it is", async () => {
    const charge = stage.pay("L1", { secondsAgo: 20 * 3_600, amount: 4_200 });
    await stage.row({ id: "L1", state: "recorded", charge, secondsAgo: 20 * 3_600, amount: 4_200 });
    await onePass(tallyd, { full: true, signal });
    const now = await databaseNow(stage.pool);
    // The zone's day ends an hour ago, so that all of it was just read.
    const zone = zoneWithOneOClock(now);
    await known("2026-01-01");
    expect(await tell(now, { zone, at: "00:00" })).toEqual({ digests: 1 });
    const [text] = await texts();
    expect(text).toMatch(/^\d{4}-\d\d-\d\d: all clear/);
    expect(text).toContain("recorded 42.00 USD in 1, charged 42.00 USD in 1, net 42.00 USD");
    expect(text).toContain("made in the range: 1 recorded");
    expect(text).toMatch(/stripe\.charges of platform\/test: complete/);
    expect(text).toMatch(/30 days: \d+ of at least/);
  });
});

/** A zone in which it is between one and two now; the signs of `Etc/GMT` are turned round. */
function zoneWithOneOClock(now: Date): string {
  const behind = now.getUTCHours() - 1;
  if (behind >= 0 && behind <= 12) return `Etc/GMT+${String(behind)}`;
  return `Etc/GMT-${String(behind < 0 ? 1 : 24 - behind)}`;
}
