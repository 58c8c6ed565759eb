/**
 * Goal: what tallyd cannot see is said and never concluded from: a stop longer than Stripe keeps
 * events, a team's database that is locked, webhooks that do not arrive, hooks that come and go.
 * Method: passes from the outside. Time passes by ages: what was read is dated back in the
 * bookkeeping.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { event, paidCharge, startReceiver } from "./receiver.ts";
import { API_KEY, WEBHOOK_SECRET, openE2e, openOf, theOpen } from "./world.ts";
import type { E2e } from "./world.ts";

const MINUTE = 60;
const HOUR = 3_600;
const DAY = 24 * HOUR;

let world: E2e;
beforeAll(async () => {
  world = await openE2e();
});
afterAll(async () => {
  await world.close();
});
beforeEach(async () => {
  await world.fresh("seed");
});

/** As if tallyd had begun to read Stripe at the first of these ages and stopped at the second. */
async function readUpTo(begun: string, stopped: string): Promise<void> {
  await world.pool.query(
    `update tallyd.source
        set covered = tstzmultirange(tstzrange(now() - $1::interval, now() - $2::interval)),
            last_ok_at = now() - $2::interval,
            cursor = case source when 'stripe.events'
                     then jsonb_build_object('startedAt', to_char(
                            (now() - $1::interval) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
                     else cursor end
      where source like 'stripe.%'`,
    [begun, stopped],
  );
}

describe("B25 c: down for longer than Stripe keeps events", () => {
  const day = (daysAgo: number): string =>
    new Date(Date.now() - daysAgo * DAY * 1_000).toISOString().slice(0, 10);

  beforeEach(async () => {
    const known = { amount: 1_500, secondsAgo: 41 * DAY };
    await world.row({ id: "L1", state: "recorded", charge: "ch_1", ...known });
    world.pay({ id: "1", ...known, metadata: { intent_id: "L1" } });
    await world.row({ id: "L2", state: "recorded", charge: "ch_2", ...known, amount: 1_600 });
    world.pay({ id: "2", ...known, amount: 1_600, metadata: { intent_id: "L2" } });
    await world.row({ id: "L3", state: "in_flight", charge: "pi_3", ...known, amount: 1_700 });
    const asked = { status: "requires_action" };
    const three = { id: "3", ...known, amount: 1_700, metadata: { intent_id: "L3" } };
    world.pay({ ...three, charge: false, more: asked });
    await world.run("backfill", "--since", "45d");
    // The row in flight for 41 days, and nothing else.
    expect((await world.once()).open).toEqual(["stuck_in_flight critical"]);
    await readUpTo("45 days", "40 days");
    // While nobody looked: a second charge, a refund, a cancellation; their events are gone.
    world.pay({ id: "1b", ...known, secondsAgo: 35 * DAY, metadata: { intent_id: "L1" } });
    world.stripe.control.seed.refund({ id: "re_2", charge: "ch_2", created: world.at(34 * DAY) });
    const canceled = { status: "canceled", cancellation_reason: "abandoned" };
    world.pay({ ...three, charge: false, more: canceled });
    // A row whose payment never happened.
    await world.row({ id: "L4", state: "reconciling", amount: 1_800, secondsAgo: 33 * DAY });
  });

  it("default: the hole is told with its dates, filled from the lists, and then judged", async () => {
    const body = { error: { type: "invalid_request_error", message: "not now" } };
    const refused = { path: "/v1/payment_intents", count: Infinity, status: 400, body };
    world.stripe.control.fault({ kind: "respond", ...refused });
    const blind = await world.once();
    expect(blind.exitCode).toBe(4);
    const gap = theOpen(blind, "coverage_gap");
    expect(gap.summary).toContain(`from ${day(40)}`);
    expect(gap.summary).toContain(`to ${day(30)}`);
    expect(gap.advice).toContain("backfill");
    expect(blind.rows["L4"]?.state).toBe("reconciling");
    expect(openOf(blind, "orphan_charge")).toEqual([]);
    world.stripe.control.clearFaults();
    const seen = await world.once();
    expect(seen.exitCode).toBe(3);
    expect(seen.incidents.find((one) => one.id === gap.id)).toMatchObject({ closedBy: "facts" });
    expect(theOpen(seen, "double_charge").charges).toEqual(["ch_1", "ch_1b"]);
    expect(seen.rows["L3"]?.state).toBe("failed_terminal");
    expect(seen.rows["L4"]?.state).toBe("failed_terminal");
    const back = await world.pool.query<{ returned: string }>(
      "select amount_returned::text as returned from tallyd.charge_list where charge_id = 'ch_2'",
    );
    expect(back.rows).toEqual([{ returned: "1600" }]);
    expect(seen.open).toEqual(["double_charge critical"]);
  });
});

describe("B26: the team's database gives no answer in time", () => {
  let rival: pg.Client;
  beforeEach(async () => {
    rival = new pg.Client({ connectionString: world.url });
    await rival.connect();
    await world.row({ id: "L1", state: "recorded", charge: "ch_1" });
    world.pay({ id: "1" });
    expect(await world.once()).toMatchObject({ exitCode: 0, open: [] });
    // Its row is there, behind the lock; so is one that only this pass could settle.
    await world.row({ id: "L2", state: "recorded", charge: "ch_2", amount: 2_100 });
    world.pay({ id: "2", amount: 2_100, metadata: { intent_id: "L2" } });
    await world.row({ id: "L3", state: "reconciling", amount: 2_200, secondsAgo: 2 * HOUR });
    world.pay({ id: "3", amount: 2_200, secondsAgo: 2 * HOUR, metadata: { intent_id: "L3" } });
    await rival.query("begin; lock table payment_intents in access exclusive mode");
  });
  afterEach(async () => {
    await rival.end();
  });

  const nothingConcluded = async (why: RegExp): Promise<void> => {
    const found = await world.run("once");
    expect(found.exitCode).toBe(4);
    const message = expect.stringMatching(why) as string;
    const failures = [{ source: "local", code: "database", message }];
    expect(found.json).toMatchObject({ failures });
    await rival.query("rollback");
    const after = await world.look(found);
    expect(after.open.filter((one) => !one.startsWith("coverage_gap"))).toEqual([]);
    expect(after.rows["L3"]?.state).toBe("reconciling");
    const next = await world.once();
    expect(next).toMatchObject({ exitCode: 0, open: [] });
    expect(next.rows["L3"]?.state).toBe("recorded");
  };

  it("default: lock_timeout", async () => {
    const url = new URL(world.url);
    url.searchParams.set("options", "-c lock_timeout=200ms");
    world.env["INTENTS_DATABASE_URL"] = url.href;
    await nothingConcluded(/lock timeout; another session holds a lock/);
  });

  it("behavior: statement_timeout", async () => {
    // The server's word for a statement that took too long is that of a cancelled one.
    const cancel = setInterval(() => {
      void world.pool.query(
        `select pg_cancel_backend(pid)
           from pg_stat_activity
          where application_name = 'tallyd-intents'
            and datname = current_database()
            and wait_event_type = 'Lock'`,
      );
    }, 100);
    try {
      await nothingConcluded(/cancel.*it took too long/);
    } finally {
      clearInterval(cancel);
    }
  });
});

describe("B05: paid, and no webhook arrives", () => {
  it("default: deliveries that are answered with a redirect are said to be missing", async () => {
    const moved = createServer((_request, response) => {
      response.writeHead(308, { location: "https://elsewhere.example/hooks" }).end();
    });
    await new Promise<void>((resolve) => moved.listen(0, "127.0.0.1", resolve));
    try {
      const port = String((moved.address() as AddressInfo).port);
      world.env["STRIPE_WEBHOOK_SECRET"] = WEBHOOK_SECRET;
      world.stripe.control.addEndpoint({ url: `http://127.0.0.1:${port}/webhooks/stripe` });
      await world.once();
      await readUpTo("8 days", "50 minutes");
      for (let n = 0; n < 17; n += 1) {
        const alike = { amount: 700, customer: "cus_4", secondsAgo: 40 * MINUTE - n * 3 };
        world.pay({ id: `B05-${String(n)}`, ...alike });
      }
      const found = await world.once();
      expect(found.open).toEqual(["coverage_gap critical", "double_charge critical"]);
      expect(theOpen(found, "double_charge").charges).toHaveLength(17);
      const gap = theOpen(found, "coverage_gap");
      expect(gap).toMatchObject({ basis: "webhooks_silent", scope: "platform/test" });
      expect(gap.advice).toMatch(/endpoint.*redirects/s);
      expect((await world.once()).messages).toEqual(found.messages);
    } finally {
      await new Promise((resolve) => moved.close(resolve));
    }
    const receiver = await startReceiver(world);
    const object = paidCharge("ch_heard", world.at(MINUTE), { amount: 1, customer: "cus_5" });
    const told = { id: "evt_heard", type: "charge.succeeded", created: world.at(MINUTE) };
    expect(await receiver.post(event({ ...told, object }))).toBe(200);
    await receiver.close();
    expect(openOf(await world.once(), "coverage_gap")).toEqual([]);
  });
});

describe("B41: what comes and goes", () => {
  const FLIPS = 3;

  it("default: a trouble that flips six times in an hour is told twice", async () => {
    for (let flip = 0; flip < FLIPS; flip += 1) {
      world.stripe.control.revokeKey(API_KEY);
      expect((await world.once()).open).toEqual(["config_error warning"]);
      world.stripe.control.restoreKey(API_KEY);
      expect((await world.once()).open).toEqual([]);
    }
    expect(world.slack.control.messages).toHaveLength(2);
  });

  it("behavior: a hook that dies and comes back brings every alert once", async () => {
    const hook = world.slack.control;
    for (let flip = 0; flip < FLIPS; flip += 1) {
      const id = `o${String(flip)}`;
      world.pay({ id, amount: 20_000 + flip, customer: `cus_${id}`, secondsAgo: 600 });
      hook.mode = "no_service_404";
      const dead = await world.once();
      expect(dead.exitCode).toBe(4);
      expect(openOf(dead, "config_error")).toHaveLength(1);
      hook.mode = "ok";
      await world.pool.query("update tallyd.outbox set due_at = now() where status <> 'sent'");
      await world.pool.query("update tallyd.hook set paused_until = null");
      // That the hook lives is known once it took a message.
      await world.once();
      const again = await world.once();
      expect(again.exitCode).toBe(3);
      expect(openOf(again, "config_error")).toEqual([]);
    }
    const texts = hook.messages.map((one) => JSON.stringify(one.payload));
    for (let flip = 0; flip < FLIPS; flip += 1) {
      expect(texts.filter((text) => text.includes(`ch_o${String(flip)}`))).toHaveLength(1);
    }
    expect(texts.filter((text) => text.includes("Slack hook")).length).toBeLessThanOrEqual(2);
  });
});

describe("what reading may cost", () => {
  it("behavior: a month's reads that are nearly used up are told, and end by themselves", async () => {
    const used = (reads: number): Promise<unknown> =>
      world.pool.query(
        `insert into tallyd.read_count (day, scope, endpoint, reads)
         values (current_date, 'platform/test', 'events', $1)
         on conflict (day, scope, endpoint) do update set reads = excluded.reads`,
        [reads],
      );
    await used(7_000);
    expect((await world.once()).open).toEqual([]);
    await used(8_000);
    const told = await world.once();
    expect(told.open).toEqual(["config_error warning"]);
    const incident = theOpen(told, "config_error");
    expect(incident).toMatchObject({ basis: "reading_budget", scope: "platform/test" });
    expect(incident.summary).toMatch(/^80\d\d of at least 10000 reads of platform\/test/);
    await used(7_000);
    expect((await world.once()).open).toEqual([]);
  });
});
