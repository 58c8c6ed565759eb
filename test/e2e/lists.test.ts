/**
 * Goal: field cases of list reading, refunds over time, alerts, amounts and clocks, from the
 * outside.
 * Method: as the cases print them; time passes by ages, not by waiting.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { API_KEY, openE2e, openOf, theOpen } from "./world.ts";
import type { E2e } from "./world.ts";

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

/** Many recorded rows and their payments, each with an amount of its own. */
async function recorded(count: number, secondsAgo: (index: number) => number): Promise<void> {
  await world.pool.query(
    `insert into payment_intents (intent_id, account_id, amount, currency, idempotency_key, state,
                                  charge_id, created_at, updated_at)
     select 'n' || n, 'A', 10000 + n, 'usd', 'key-' || n, 'recorded', 'ch_n' || n,
            now() - interval '1 hour', now() - interval '1 hour'
       from generate_series(0, $1::integer - 1) as n`,
    [count],
  );
  for (let index = 0; index < count; index += 1) {
    world.pay({
      ...{ id: `n${String(index)}`, amount: 10_000 + index, secondsAgo: secondsAgo(index) },
      ...{ more: { events: false }, charge: { events: false } },
    });
  }
}

const chargesKnown = async (): Promise<number> => {
  const found = await world.pool.query("select from tallyd.charge_list where status = 'succeeded'");
  return found.rowCount ?? 0;
};

describe("B24, B26 a walk that breaks off", () => {
  it("default: a crowded second is read whole after a break, each object once", async () => {
    await recorded(252, (index) => (index < 250 ? HOUR : HOUR + 1 - (index - 250) * 2));
    const withdraw = world.stripe.control.fault({
      ...{ kind: "error_before", path: "/v1/charges", nth: 2, count: Infinity, status: 500 },
    });
    const broken = await world.once();
    expect(broken.exitCode).toBe(4);
    expect(broken.open.filter((one) => !one.startsWith("coverage_gap"))).toEqual([]);
    withdraw();
    const resumed = await world.once();
    expect(resumed).toMatchObject({ exitCode: 0, open: [] });
    expect(await chargesKnown()).toBe(252);
  });

  it("default: rate limits in mid-walk judge nothing absent; the next pass is complete", async () => {
    await recorded(300, (index) => HOUR - index);
    // A pause that is longer than a pass may wait ends the pass at once.
    const limited = { path: "/v1/charges", nth: 2, count: 6, retryAfter: "90" };
    world.stripe.control.fault({ kind: "rate_limit", ...limited });
    const first = await world.once();
    expect(first.exitCode).toBe(4);
    expect(first.open.filter((one) => !one.startsWith("coverage_gap"))).toEqual([]);
    world.stripe.control.clearFaults();
    const next = await world.once();
    expect(next).toMatchObject({ exitCode: 0, open: [] });
    expect(await chargesKnown()).toBe(300);
  });

  it("behavior: a refused key is 4 and one config_error, and nothing is called absent", async () => {
    await world.row({ id: "L1", state: "recorded", charge: "ch_gone" });
    await world.row({ id: "L2", state: "reconciling", secondsAgo: DAY });
    world.stripe.control.revokeKey(API_KEY);
    const found = await world.once();
    expect(found.exitCode).toBe(4);
    expect(new Set(found.open)).toEqual(new Set(["config_error warning"]));
    expect(openOf(found, "config_error")).toHaveLength(1);
    expect(found.rows["L2"]?.state).toBe("reconciling");
    expect(`${found.stdout}${found.stderr}`).not.toContain(API_KEY);
    expect((await world.once()).messages).toHaveLength(1);
    world.stripe.control.restoreKey(API_KEY);
    expect(openOf(await world.once(), "config_error")).toEqual([]);
  });
});

describe("B25 absence and what is too old", () => {
  it("default: a row of seconds ago gets no verdict", async () => {
    await world.row({ id: "L1", state: "reconciling", secondsAgo: 20 });
    const found = await world.once();
    expect(found).toMatchObject({ exitCode: 0, open: [] });
    expect(found.rows["L1"]?.state).toBe("reconciling");
  });

  it.each(["an event", "the list"])("behavior: an old charge's refund is seen (%s)", async (by) => {
    const old = { amount: 4_400, secondsAgo: 180 * DAY };
    await world.row({ id: "L1", state: "recorded", charge: "ch_old", ...old });
    world.pay({ id: "old", ...old, more: { events: false }, charge: { events: false } });
    world.stripe.control.seed.refund({
      ...{ id: "re_old", charge: "ch_old", created: world.at(HOUR), events: by === "an event" },
    });
    const found = await world.once();
    expect(found).toMatchObject({ exitCode: 0, open: [] });
    const seen = await world.pool.query<{ returned: string }>(
      "select amount_returned::text as returned from tallyd.charge_list where charge_id = 'ch_old'",
    );
    expect(seen.rows).toEqual([{ returned: "4400" }]);
  });

  it("behavior: an event that is listed late is not missed", async () => {
    const old = { amount: 4_500, secondsAgo: 10 * DAY };
    await world.row({ id: "L1", state: "in_flight", charge: "pi_late", ...old });
    const silent = { events: false, status: "requires_payment_method" };
    world.pay({ id: "late", ...old, charge: false, more: silent });
    await world.once();
    const canceled = { status: "canceled", cancellation_reason: "abandoned" };
    world.stripe.control.eventRule({ action: "list_delay", delayMs: 60_000, count: Infinity });
    world.pay({ id: "late", ...old, charge: false, more: canceled });
    world.pay({ id: "x1", amount: 1, secondsAgo: 1, charge: false, more: silent });
    world.stripe.control.clearEventRules();
    const newer = await world.once();
    expect(newer.exitCode).not.toBe(4);
    world.stripe.control.advance(61_000);
    const found = await world.once();
    expect(found.rows["L1"]?.state).toBe("failed_terminal");
  });
});

describe("B29 a refund that fails later", () => {
  it("default: refunded closes, failed reopens, and both are told", async () => {
    await world.row({ id: "L1", state: "recorded", charge: "ch_1", amount: 1_000 });
    const paid = { amount: 1_000, metadata: { intent_id: "L1" } };
    world.pay({ id: "1", ...paid });
    world.pay({ id: "2", ...paid, secondsAgo: 890 });
    const opened = await world.once();
    const id = theOpen(opened, "double_charge").id;
    expect(opened.exitCode).toBe(3);
    const { control } = world.stripe;
    control.seed.refund({ id: "re_1", charge: "ch_2", amount: 1_000n });
    const settled = await world.once();
    expect(settled).toMatchObject({ exitCode: 0, open: [] });
    expect(settled.incidents.find((one) => one.id === id)).toMatchObject({
      ...{ status: "closed", closedBy: "facts" },
    });
    // Settled: single closings are told for a critical that was told.
    expect(settled.messages).toHaveLength(2);
    control.fail("re_1");
    const again = await world.once();
    expect(again.exitCode).toBe(3);
    expect(theOpen(again, "double_charge")).toMatchObject({ id, status: "open" });
    expect(again.messages.length).toBeGreaterThan(2);
    const quiet = await world.once();
    expect(quiet.messages).toEqual(again.messages);
  });
});

describe("B33 amounts beyond a column", () => {
  it("default: an integer column is a remark until an amount appears that it cannot hold", async () => {
    await world.row({ id: "L1", state: "recorded", charge: "ch_1", amount: 1_000 });
    world.pay({ id: "1", amount: 1_000 });
    expect(await world.once()).toMatchObject({ exitCode: 0, open: [] });
    const metadata = { reference: "o-2" };
    world.pay({ id: "2", amount: 3_000_000_000n, currency: "vnd", metadata, secondsAgo: 200 });
    const found = await world.once();
    expect(found.open).toEqual(["config_error warning", "orphan_charge warning"]);
    const orphan = theOpen(found, "orphan_charge");
    expect(orphan).toMatchObject({ amountAtRisk: "3000000000", currency: "vnd" });
    expect(`${orphan.summary} ${orphan.advice} ${JSON.stringify(orphan.evidence)}`).toMatch(
      /column|2147483647/,
    );
    const again = await world.once();
    expect(openOf(again, "config_error")).toHaveLength(1);
    expect(again.messages).toEqual(found.messages);
  });

  it("behavior: the largest amounts are exact, and one unit is a difference", async () => {
    await world.fresh("own");
    const big = 999_999_999_999n;
    await world.row({ id: "L1", state: "recorded", charge: "ch_1", amount: big, currency: "idr" });
    await world.row({
      id: "L2",
      state: "recorded",
      charge: "ch_2",
      amount: big - 1n,
      currency: "idr",
    });
    world.pay({ id: "1", amount: big, currency: "idr", customer: "cus_1" });
    world.pay({ id: "2", amount: big, currency: "idr", customer: "cus_2" });
    const found = await world.once();
    expect(found.open).toEqual(["amount_mismatch critical"]);
    expect(theOpen(found, "amount_mismatch")).toMatchObject({ intents: ["L2"], charges: ["ch_2"] });
    expect(JSON.stringify(theOpen(found, "amount_mismatch"))).toContain(String(big));
  });
});

describe("B41 many alerts, and Slack's limits", () => {
  const orphans = (from: number, to: number): void => {
    for (let index = from; index < to; index += 1) {
      const id = `o${String(index)}`;
      world.pay({ id, amount: 20_000 + index, customer: `cus_${id}`, secondsAgo: 600 });
    }
  };

  it("default: a storm is one message, the same storm is none", async () => {
    orphans(0, 60);
    const first = await world.once();
    expect(openOf(first, "orphan_charge")).toHaveLength(60);
    expect(first.messages).toHaveLength(1);
    const second = await world.once();
    expect(second.messages).toHaveLength(1);
    orphans(60, 61);
    for (let index = 0; index < 50; index += 1) {
      world.stripe.control.seed.refund({ charge: `ch_o${String(index)}` });
    }
    const third = await world.once();
    expect(openOf(third, "orphan_charge")).toHaveLength(11);
    expect(third.messages.length - second.messages.length).toBeLessThanOrEqual(2);
    expect(third.messages.length).toBeGreaterThan(second.messages.length);
  });

  it("behavior: a limited hook gets the message once, when it may", async () => {
    orphans(0, 3);
    world.slack.control.limited = true;
    await world.once();
    for (let round = 0; round < 4 && world.slack.control.messages.length < 3; round += 1) {
      await world.pool.query("update tallyd.outbox set due_at = now() where status <> 'sent'");
      await world.pool.query("update tallyd.hook set paused_until = null");
      world.slack.control.limited = false;
      await world.once();
    }
    const texts = world.slack.control.messages.map((one) => JSON.stringify(one.payload));
    expect(new Set(texts).size).toBe(texts.length);
    for (const id of ["ch_o0", "ch_o1", "ch_o2"]) {
      expect(texts.filter((text) => text.includes(id))).toHaveLength(1);
    }
  });

  it("behavior: a 503 after the message was kept is not repeated blindly", async () => {
    orphans(0, 1);
    world.slack.control.mode = "stored_503";
    await world.once();
    expect(world.slack.control.messages).toHaveLength(1);
    world.slack.control.mode = "ok";
    await world.once();
    expect(world.slack.control.messages).toHaveLength(1);
  });

  it("behavior: two passes at once tell once", async () => {
    orphans(0, 2);
    const [one, other] = await Promise.all([world.run("once"), world.run("once")]);
    expect([one.exitCode, other.exitCode]).toEqual([3, 3]);
    await world.once();
    const texts = world.slack.control.messages.map((each) => JSON.stringify(each.payload));
    for (const id of ["ch_o0", "ch_o1"]) {
      expect(texts.filter((text) => text.includes(id))).toHaveLength(1);
    }
  });

  it("behavior: a dead hook is 4, and said by what still works", async () => {
    orphans(0, 1);
    world.slack.control.mode = "no_service_404";
    const found = await world.once();
    expect(found.exitCode).toBe(4);
    expect(found.open).toContain("orphan_charge warning");
    expect(found.open.some((one) => /^(config_error|coverage_gap) /.test(one))).toBe(true);
    world.slack.control.mode = "ok";
    await world.pool.query("update tallyd.outbox set due_at = now() where status <> 'sent'");
    await world.pool.query("update tallyd.hook set paused_until = null");
    const again = await world.once();
    expect(again.exitCode).toBe(3);
    expect(JSON.stringify(world.slack.control.messages)).toContain("ch_o0");
  });
});

describe("B45 times without a zone", () => {
  const zoneless = async (): Promise<void> => {
    await world.pool.query(
      `alter table payment_intents alter column created_at type timestamp using created_at,
                                   alter column updated_at type timestamp using updated_at`,
    );
  };
  const write = (id: string, minutesAgo: number): Promise<unknown> =>
    world.pool.query(
      `insert into payment_intents (intent_id, account_id, amount, currency, idempotency_key,
                                    state, created_at, updated_at)
       select $1, 'A', 500, 'usd', $1, 'in_flight', t.at, t.at
         from (select (now() at time zone 'UTC') + interval '2 hours'
                      - $2::integer * interval '1 minute' as at) as t`,
      [id, minutesAgo],
    );

  it("error: without a zone nothing is guessed: exit code 2 and the column is named", async () => {
    await zoneless();
    await write("L1", 5);
    const ran = await world.run("once");
    expect(ran.exitCode).toBe(2);
    expect(ran.stdout).toMatch(/updated_at|created_at/);
    expect(ran.stdout).toMatch(/timeZone|TIME_ZONE/);
  });

  it("default: with the zone a young row is young and an old one is stuck", async () => {
    await zoneless();
    world.env["INTENTS_TIME_ZONE"] = "+02:00";
    await write("L1", 5);
    expect(await world.once()).toMatchObject({ exitCode: 0, open: [] });
    await write("L2", 15);
    const found = await world.once();
    expect(openOf(found, "stuck_in_flight").flatMap((one) => one.intents)).toEqual(["L2"]);
  });

  it("behavior: a row of the future is a wrong clock", async () => {
    await world.row({ id: "L2", state: "in_flight", secondsAgo: -3 * HOUR });
    const found = await world.once();
    expect(found.open).toEqual(["config_error warning"]);
    expect(found.exitCode).toBe(3);
  });
});
