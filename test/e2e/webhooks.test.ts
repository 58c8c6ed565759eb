/**
 * Goal: field cases of webhooks, seen from the outside.
 * Method: signed deliveries to the running public port, then passes. Payments that only a webhook
 * can tell of are older than the first look back and have no events in the list.
 */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { event, paidCharge, paymentIntent, startReceiver } from "./receiver.ts";
import type { Receiver } from "./receiver.ts";
import { openE2e, openOf, theOpen, WEBHOOK_SECRET } from "./world.ts";
import type { E2e } from "./world.ts";

const OLD = 20 * 24 * 3_600;
const FIXTURES = path.join(import.meta.dirname, "../fixtures/stripe");

let world: E2e;
let receiver: Receiver;
beforeAll(async () => {
  world = await openE2e();
});
beforeEach(async () => {
  await world.fresh("seed", { STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET });
  receiver = await startReceiver(world);
});
afterEach(async () => {
  await receiver.close();
});
afterAll(async () => {
  await world.close();
});

interface ChargeRow {
  readonly charge_id: string;
  readonly status: string;
  readonly payment_status: string | null;
  readonly intent: string | null;
  readonly amount: string;
}

async function charges(): Promise<readonly ChargeRow[]> {
  const found = await world.pool.query<ChargeRow>(
    `select charge_id, status, payment_status, intent, amount::text as amount
       from tallyd.charge_list
      order by charge_id`,
  );
  return found.rows;
}

async function stored(): Promise<readonly { event_id: string; status: string }[]> {
  const found = await world.pool.query<{ event_id: string; status: string }>(
    "select event_id, status from tallyd.inbox order by event_id",
  );
  return found.rows;
}

/** A payment of long ago that is in no list of recent things. */
async function hidden(id: string, amount: number): Promise<void> {
  await world.row({ id, state: "recorded", amount, charge: `ch_${id}`, secondsAgo: OLD });
  world.pay({ id, amount, secondsAgo: OLD, more: { events: false }, charge: { events: false } });
}

describe("B13 order of events", () => {
  it("default: any order in one second gives the same view", async () => {
    world.env["STRIPE_API_KEY"] = undefined;
    const orders = ["012", "021", "102", "120", "201", "210"];
    const at = world.at(300);
    for (const [index, order] of orders.entries()) {
      const id = `B13-${order}`;
      const amount = 2_000 + index;
      await world.row({ id, state: "recorded", amount, charge: `ch_${id}`, secondsAgo: 310 });
      const body = (status: string, more = {}) =>
        paymentIntent(`pi_${id}`, at - 1, { amount, status, latest_charge: null, ...more });
      const paid = { latest_charge: `ch_${id}` };
      const kinds = [
        ["created", at - 1, body("requires_payment_method", { amount_received: 0 })],
        ["processing", at, body("processing", { amount_received: 0, ...paid })],
        ["succeeded", at, body("succeeded", { amount_received: amount, ...paid })],
      ] as const;
      const charge = paidCharge(`ch_${id}`, at, { amount, payment_intent: `pi_${id}` });
      const told = { id: `evt_${id}-c`, type: "charge.succeeded", created: at };
      expect(await receiver.post(event({ ...told, object: charge }))).toBe(200);
      for (const place of order) {
        const [kind, created, object] = kinds[Number(place)] ?? kinds[0];
        const type = `payment_intent.${kind}`;
        const one = event({ id: `evt_${id}-${place}`, type, created, object });
        expect(await receiver.post(one)).toBe(200);
      }
    }
    const found = await world.once();
    expect(found.open).toEqual([]);
    expect(found.exitCode).toBe(0);
    const views = (await charges()).map(({ charge_id, payment_status, intent }) => [
      ...[charge_id, payment_status, intent],
    ]);
    expect(views).toEqual(orders.map((o) => [`ch_B13-${o}`, "succeeded", `B13-${o}`]));
  });
});

describe("B14 duplicates and siblings", () => {
  it("default: every event once, however often and however parallel it came", async () => {
    world.env["STRIPE_API_KEY"] = undefined;
    const at = world.at(300);
    await world.row({ id: "L1", state: "recorded", charge: "ch_1", key: "k1" });
    await world.row({ id: "L2", state: "recorded", charge: "ch_1", key: "k2" });
    const paid = paymentIntent("pi_1", at, { latest_charge: "ch_1" });
    const charge = paidCharge("ch_1", at, { payment_intent: "pi_1" });
    const one = event({ id: "evt_1", type: "payment_intent.succeeded", object: paid, created: at });
    const two = event({ id: "evt_2", type: "charge.succeeded", object: charge, created: at });
    const three = event({ id: "evt_3", type: "charge.updated", object: charge, created: at + 1 });
    const all = [one, two, one, three, two, one];
    expect(new Set(await Promise.all(all.map((each) => receiver.post(each))))).toEqual(
      new Set([200]),
    );
    expect((await stored()).map((row) => row.event_id)).toEqual(["evt_1", "evt_2", "evt_3"]);
    const found = await world.once();
    expect(found.open).toEqual(["duplicate_charge_id critical"]);
    expect(found.exitCode).toBe(3);
    expect(await charges()).toHaveLength(1);
  });
});

describe("B15 seen is not processed", () => {
  beforeEach(async () => {
    await world.pool.query(`
      create or replace function public.e2e_poison() returns trigger language plpgsql
      as 'begin raise exception ''e2e: cannot be stored''; end'`);
    await world.pool.query(`
      create trigger e2e_poison before insert on tallyd.charge for each row
      when (new.charge_id = 'ch_poison') execute function public.e2e_poison()`);
  });
  afterEach(async () => {
    await world.pool.query("drop trigger if exists e2e_poison on tallyd.charge");
  });

  const poison = (at: number) =>
    event({
      ...{ id: "evt_poison", type: "charge.succeeded", created: at },
      object: paidCharge("ch_poison", at, { amount: 3_001, metadata: { intent_id: "L1" } }),
    });

  it("default: what could not be processed is processed when it comes again", async () => {
    world.env["STRIPE_API_KEY"] = undefined;
    const at = world.at(300);
    await world.row({ id: "L1", state: "recorded", amount: 3_001, charge: "ch_poison" });
    await world.row({ id: "L2", state: "recorded", charge: "ch_good" });
    expect(await receiver.post(poison(at))).toBe(200);
    const good = paidCharge("ch_good", at);
    const sound = event({ id: "evt_good", type: "charge.succeeded", object: good, created: at });
    expect(await receiver.post(sound)).toBe(200);
    await world.once();
    // One bad event does not hold up the others.
    expect((await charges()).map((row) => row.charge_id)).toEqual(["ch_good"]);
    const status = async (): Promise<string | undefined> =>
      (await stored()).find((row) => row.event_id === "evt_poison")?.status;
    expect(await status()).toBe("error");
    await world.pool.query("drop trigger e2e_poison on tallyd.charge");
    expect(await receiver.post(poison(at))).toBe(200);
    await world.once();
    expect(await status()).toBe("done");
    expect((await charges()).map((row) => row.charge_id)).toEqual(["ch_good", "ch_poison"]);
    expect(await receiver.post(poison(at))).toBe(200);
    const last = await world.once();
    expect(await status()).toBe("done");
    expect(last).toMatchObject({ exitCode: 0, open: [], messages: [] });
  });

  it("behavior: a poison event dies after its attempts, with one alert", async () => {
    expect(await receiver.post(poison(world.at(300)))).toBe(200);
    await world.once();
    await world.pool.query(
      "update tallyd.inbox set attempts = 9, next_at = now() where event_id = 'evt_poison'",
    );
    const dead = await world.once();
    expect((await stored()).map((row) => row.status)).toEqual(["dead"]);
    expect(dead.open).toHaveLength(1);
    expect(dead.open[0]).toMatch(/^(coverage_gap|config_error) /);
    expect(dead.messages).toHaveLength(1);
    expect((await world.once()).messages).toHaveLength(1);
  });
});

describe("B18 time of signatures", () => {
  const any = (n: number) => {
    const object = paidCharge(`ch_t${String(n)}`, world.at(300), { metadata: {} });
    const created = world.at(2 * 24 * 3_600);
    return event({ id: `evt_t${String(n)}`, type: "charge.updated", object, created });
  };

  it("default: the header's time decides, at receipt, in both directions", async () => {
    expect(await receiver.post(any(1), { signedSecondsAgo: 10 })).toBe(200);
    expect(await receiver.post(any(2), { signedSecondsAgo: 400 })).toBe(400);
    expect(await receiver.post(any(3), { signedSecondsAgo: -400 })).toBe(400);
    expect((await stored()).map((row) => row.event_id)).toEqual(["evt_t1"]);
  });

  it("behavior: ten valid signatures with one offset are a clock, said once", async () => {
    world.env["STRIPE_API_KEY"] = undefined;
    for (let n = 0; n < 10; n += 1) {
      expect(await receiver.post(any(n), { signedSecondsAgo: 395 + n })).toBe(400);
    }
    await receiver.close();
    const found = await world.once();
    expect(found.open).toEqual(["config_error warning"]);
    const incident = theOpen(found, "config_error");
    expect(`${incident.summary} ${incident.advice}`).toMatch(/clock/i);
    expect(`${incident.summary} ${JSON.stringify(incident.evidence)}`).toMatch(/40\d|39\d/);
    expect(found.exitCode).toBe(3);
    expect((await world.once()).messages).toHaveLength(1);
  });

  it("behavior: many wrong signatures are a wrong secret, said once", async () => {
    world.env["STRIPE_API_KEY"] = undefined;
    for (let n = 0; n < 10; n += 1) {
      expect(await receiver.post(any(n), { secret: "whsec_another_one" })).toBe(400);
    }
    await receiver.close();
    const found = await world.once();
    expect(found.open).toEqual(["config_error warning"]);
    expect(theOpen(found, "config_error").summary).not.toContain(WEBHOOK_SECRET);
    expect(await stored()).toEqual([]);
  });
});

describe("B20 accounts nobody named", () => {
  it("default: their events are acknowledged and ignored", async () => {
    world.env["STRIPE_API_KEY"] = undefined;
    const at = world.at(300);
    const told = { id: "evt_x", type: "charge.succeeded", created: at, account: "acct_X" };
    expect(await receiver.post(event({ ...told, object: paidCharge("ch_x", at) }))).toBe(200);
    const found = await world.once();
    expect(await charges()).toEqual([]);
    expect(openOf(found, "orphan_charge")).toEqual([]);
    expect(found.exitCode).toBe(0);
  });
});

describe("B22 shapes of versions", () => {
  it("default: one reader for every shape; an unknown one is fetched", async () => {
    const at = world.at(OLD);
    const inner = (id: string) => {
      const data = [paidCharge(`ch_${id}`, at, { amount: 7_000, payment_intent: `pi_${id}` })];
      return { charges: { object: "list", data, has_more: false, total_count: 1 } };
    };
    const shapes = [
      ["s1", "2020-08-27", inner("s1")],
      ["s2", "2020-08-27", { ...inner("s2"), latest_charge: "ch_s2" }],
      ["s3", "2024-09-30.acacia", { latest_charge: "ch_s3", invoice: null }],
      ["s5", "2025-04-30.basil", { latest_charge: "ch_s5" }],
      ["s6", "2031-01-01.x", { latest_charge: { ref: "ch_s6" }, amount: { value: 7_000 } }],
      ["s7", null, { latest_charge: "ch_s7" }],
    ] as const;
    for (const [id, version, more] of shapes) {
      await hidden(id, 7_000);
      const amounts = { amount: 7_000, amount_received: 7_000, ...more };
      const object = paymentIntent(`pi_${id}`, at, amounts);
      const told = { id: `evt_${id}`, type: "payment_intent.succeeded", created: world.at(300) };
      expect(await receiver.post(event({ ...told, object, version }))).toBe(200);
    }
    const found = await world.once();
    expect(found.open).toEqual([]);
    expect(found.exitCode).toBe(0);
    expect((await charges()).map((row) => [row.charge_id, row.status, row.intent])).toEqual(
      shapes.map(([id]) => [`ch_${id}`, "succeeded", id]),
    );
  });
});

describe("B23 reads that lag behind an event", () => {
  // A shape that nobody knows makes tallyd ask Stripe for the charge that the first event told of.
  const tell = async (): Promise<void> => {
    await hidden("1", 2_000);
    const [old, at] = [world.at(OLD), world.at(5)];
    const paid = paymentIntent("pi_1", old, { latest_charge: "ch_1" });
    const charge = { id: "ch_1", object: "charge", amount: { value: 2_000 } };
    const [created, version] = [at, "2031-01-01.x"];
    for (const told of [
      event({ id: "evt_1", type: "payment_intent.succeeded", object: paid, created }),
      event({ id: "evt_2", type: "charge.updated", object: charge, created, version }),
    ]) {
      expect(await receiver.post(told)).toBe(200);
    }
  };
  const deny = () =>
    world.stripe.control.fault({
      ...{ kind: "resource_missing", path: /\/v1\/(charges|payment_intents)\/\w+/ },
      count: Infinity,
    });
  const known = async () =>
    (await charges()).map((row) => [row.charge_id, row.status, row.payment_status, row.intent]);
  const asWas = [["ch_1", "succeeded", "succeeded", "1"]];

  it("default: a fresh denial is not yet an answer, and the richer event stays", async () => {
    await tell();
    const withdraw = deny();
    const early = await world.once();
    expect(early.open).toEqual([]);
    expect(await known()).toEqual(asWas);
    expect(early.rows["1"]).toMatchObject({ state: "recorded", charge_id: "ch_1" });
    expect(world.stripe.control.requests.map((one) => one.path)).toContain("/v1/charges/ch_1");
    withdraw();
    world.stripe.control.fault({ kind: "no_latest_charge", count: Infinity });
    await world.pool.query("update tallyd.refetch set due_at = now()");
    const later = await world.once();
    expect(later).toMatchObject({ open: [], exitCode: 0, messages: [] });
    expect(await known()).toEqual(asWas);
    const waiting = await world.pool.query("select from tallyd.refetch");
    expect(waiting.rowCount).toBe(0);
  });

  it("behavior: denied past the grace is a gap of ours and never drift", async () => {
    await tell();
    deny();
    await world.once();
    await world.pool.query(
      "update tallyd.refetch set due_at = now(), first_at = now() - interval '11 minutes'",
    );
    // The event came before the first question, as it does when time passes by itself.
    await world.pool.query("update tallyd.charge set seen_at = now() - interval '11 minutes'");
    const found = await world.once();
    expect(found.open).toEqual(["coverage_gap critical"]);
    expect(JSON.stringify(theOpen(found, "coverage_gap"))).toMatch(/ch_1/);
    expect(await known()).toEqual(asWas);
    expect((await world.once()).messages).toHaveLength(1);
  });
});

describe("public samples", () => {
  it("default: every sample is taken, and what contradicts itself is not believed", async () => {
    const files = readdirSync(FIXTURES).filter((name) => name.endsWith(".json"));
    expect(files.length).toBeGreaterThan(5);
    for (const name of files) {
      const body: unknown = JSON.parse(readFileSync(path.join(FIXTURES, name), "utf8"));
      expect([name, await receiver.post(body)]).toEqual([name, 200]);
    }
    const found = await world.once();
    expect([0, 3]).toContain(found.exitCode);
    const plain = await world.run("explain", "ch_13");
    expect(plain.exitCode).toBe(0);
    const known: unknown = expect.arrayContaining([expect.objectContaining({ id: "ch_13" })]);
    expect(plain.json).toMatchObject({ charges: known });
    // Its charge says succeeded and not paid, and Stripe does not know it.
    const held = (await charges()).filter((row) => row.charge_id === "ch_11");
    expect(held.map((row) => row.status)).not.toContain("succeeded");
    // Its type says failed, its object succeeded: neither is stored before Stripe was asked.
    const refunds = await world.pool.query("select from tallyd.refund where refund_id = 're_23'");
    expect(refunds.rowCount).toBe(0);
    const asked = world.stripe.control.requests.map((one) => one.path);
    expect(asked).toContain("/v1/refunds/re_23");
  });

  it("behavior: an event whose type contradicts its object leaves it to Stripe", async () => {
    await hidden("29", 2_000);
    const { seed } = world.stripe.control;
    seed.refund({ id: "re_29", charge: "ch_29", amount: 2_000n, events: false, created: 1 });
    const object = {
      id: "re_29",
      object: "refund",
      amount: 2_000,
      charge: "ch_29",
      currency: "usd",
    };
    const body = { ...object, status: "succeeded", created: world.at(400), metadata: {} };
    const told = { id: "evt_29", type: "refund.failed", created: world.at(300) };
    expect(await receiver.post(event({ ...told, object: body }))).toBe(200);
    const found = await world.once();
    expect(openOf(found, "refund_drift")).toEqual([]);
    const refunds = await world.pool.query<{ status: string }>(
      "select status from tallyd.refund where refund_id = 're_29'",
    );
    expect(refunds.rows).toEqual([{ status: "succeeded" }]);
  });
});
