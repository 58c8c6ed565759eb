import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { drainRefetch } from "../../../src/sources/stripe/drain-refetch.ts";
import { chargesOfPaymentIntent, lookDirect } from "../../../src/sources/stripe/lookup.ts";
import { readObject } from "../../../src/sources/stripe/read-object.ts";
import { latestLook } from "../../../src/store/looks.ts";
import { applyFacts } from "../../../src/store/mirror.ts";
import { requestRefetch } from "../../../src/store/refetch.ts";
import { getSource } from "../../../src/store/sources.ts";
import {
  ACCOUNT,
  ACCOUNT_SCOPE,
  idsOf,
  KEY,
  MINUTE,
  openStripeWorld,
  PLATFORM_SCOPE,
  SECOND,
  secondsAt,
  T,
} from "./stripe-world.ts";
import type { StripeWorld } from "./stripe-world.ts";

let world: StripeWorld;

beforeEach(async () => {
  world = await openStripeWorld();
});

afterEach(async () => {
  await world.close();
});

interface QueueRow {
  readonly object_id: string;
  readonly status: string;
  readonly attempts: number;
  readonly last_error: string | null;
}

async function ask(...ids: string[]): Promise<void> {
  const requests = ids.map((objectId) => ({
    scope: PLATFORM_SCOPE,
    objectId,
    reason: "a test asks",
  }));
  await requestRefetch(world.pool, { requests, now: world.clock.now() });
}

async function queue(): Promise<QueueRow[]> {
  const found = await world.pool.query<QueueRow>(
    "select object_id, status, attempts, last_error from tallyd.refetch order by object_id",
  );
  return found.rows;
}

async function intentRow(): Promise<{ latest_charge: string | null; status: string } | undefined> {
  const found = await world.pool.query<{
    latest_charge: string | null;
    status: string;
    missing_since: Date | null;
  }>("select latest_charge, status, missing_since from tallyd.stripe_payment_intent");
  return found.rows[0];
}

const drain = (): ReturnType<typeof drainRefetch> => drainRefetch(world.deps, { limit: 50 });

describe("the queue", () => {
  test("default: due objects are read once and leave the queue", async () => {
    world.sandbox.control.seed.paymentIntent({ id: "pi_1", charge: { id: "ch_1" } });
    await ask("pi_1", "ch_1", "pi_1");
    expect(await drain()).toMatchObject({ ok: true, fetched: 2, notYet: 0, missing: 0 });
    expect(await queue()).toEqual([]);
    expect(await idsOf(world.pool, "charge")).toEqual(["ch_1"]);
    expect(world.sandbox.control.requests).toHaveLength(2);
    expect(await drain()).toMatchObject({ fetched: 0 });
  });

  test("behavior: a poor or stale read right after success is not yet (B23)", async () => {
    const control = world.sandbox.control;
    control.seed.paymentIntent({ id: "pi_1", charge: { id: "ch_1" }, created: secondsAt(0) });
    const fromEvent = readObject({
      object: {
        id: "pi_1",
        object: "payment_intent",
        amount: 2_000,
        amount_received: 2_000,
        currency: "usd",
        status: "succeeded",
        latest_charge: "ch_1",
        metadata: {},
        created: secondsAt(0),
      },
      scope: PLATFORM_SCOPE,
      settings: world.deps.settings.stripe,
      version: { at: world.clock.now(), source: "event" },
      eventType: "payment_intent.succeeded",
    });
    await applyFacts(world.pool, fromEvent.facts, world.clock.now());
    const rich = { latest_charge: "ch_1", status: "succeeded", missing_since: null };

    await ask("pi_1");
    control.fault({ kind: "no_latest_charge" });
    world.clock.ms = T + SECOND;
    expect(await drain()).toMatchObject({ ok: true, fetched: 0, notYet: 1 });
    expect(await intentRow()).toEqual(rich);

    control.fault({ kind: "resource_missing" });
    world.clock.ms = T + 4 * SECOND;
    expect(await drain()).toMatchObject({ ok: true, notYet: 1, missing: 0 });
    expect(await intentRow()).toEqual(rich);
    expect(await queue()).toMatchObject([{ status: "pending", attempts: 2 }]);

    world.clock.ms = T + 20 * SECOND;
    expect(await drain()).toMatchObject({ fetched: 1, notYet: 0 });
    expect(await intentRow()).toEqual(rich);
    expect(await queue()).toEqual([]);
  });

  test("behavior: denied past the grace is a fact of its own (B23, variant)", async () => {
    const control = world.sandbox.control;
    control.seed.paymentIntent({ id: "pi_1", charge: { id: "ch_1" }, created: secondsAt(0) });
    await lookDirect(world.deps, PLATFORM_SCOPE, "pi_1");
    control.fault({ kind: "resource_missing", id: "pi_1", count: Infinity });
    // The stand-in dates its answers by the machine's clock; a denial must be newer than the look.
    await world.pool.query(
      `update tallyd.stripe_payment_intent
          set version_at = $1, field_versions = '{}'::jsonb`,
      [new Date(T)],
    );
    await ask("pi_1");
    world.clock.ms = T + 4 * MINUTE;
    expect(await drain()).toMatchObject({ notYet: 1, missing: 0 });
    world.clock.ms = T + 10 * MINUTE;
    expect(await drain()).toMatchObject({ notYet: 0, missing: 1 });
    expect(await queue()).toMatchObject([{ object_id: "pi_1", status: "missing" }]);
    expect((await queue())[0]?.last_error).toContain("account");
    const row = await world.pool.query<{ missing: boolean }>(
      "select missing_since is not null as missing from tallyd.stripe_payment_intent",
    );
    expect(row.rows).toEqual([{ missing: true }]);
    expect(await drain()).toMatchObject({ missing: 0 });
  });

  test("behavior: what cannot be asked about is put off", async () => {
    const ids = Array.from({ length: 12 }, (_, index) => `pi_${String(index)}`);
    for (const id of ids) world.sandbox.control.seed.paymentIntent({ id });
    await ask(...ids);
    world.sandbox.control.revokeKey(KEY);
    const refused = await drain();
    expect(refused).toMatchObject({
      ok: false,
      fetched: 0,
      postponed: 12,
      failed: [{ source: "stripe.lookup", scope: PLATFORM_SCOPE, code: "auth" }],
    });
    // Four were under way when the first was refused; nobody asked for the others.
    expect(world.sandbox.control.requests.length).toBeLessThanOrEqual(4);
    expect((await queue()).every((row) => row.attempts === 0)).toBe(true);
    world.sandbox.control.restoreKey(KEY);
    expect(await drain()).toMatchObject({ fetched: 0 });
    world.clock.ms = T + 61 * SECOND;
    expect(await drain()).toMatchObject({ ok: true, fetched: 12 });
    const source = await getSource(world.pool, { source: "stripe.lookup", scope: PLATFORM_SCOPE });
    expect(source).toMatchObject({ failures: 0, lastErrorCode: null });
  });

  test("behavior: a locked object is read in the end, others are not held up (B26)", async () => {
    for (const id of ["pi_7", "pi_8"]) world.sandbox.control.seed.paymentIntent({ id });
    world.sandbox.control.fault({ kind: "lock_timeout", id: "pi_7", count: 2 });
    await ask("pi_7", "pi_8");
    expect(await drain()).toMatchObject({ ok: true, fetched: 2 });
  });

  test("error: an id that cannot be read uses up its attempts, unasked", async () => {
    await ask("cus_1");
    expect(await drain()).toMatchObject({ ok: true, notYet: 1 });
    expect(world.sandbox.control.requests).toEqual([]);
    expect(await queue()).toMatchObject([{ status: "pending", attempts: 1 }]);
  });

  test("behavior: no more than the limit", async () => {
    for (const id of ["pi_1", "pi_2", "pi_3"]) world.sandbox.control.seed.paymentIntent({ id });
    await ask("pi_1", "pi_2", "pi_3");
    expect(await drainRefetch(world.deps, { limit: 2 })).toMatchObject({ fetched: 2 });
    expect(await queue()).toHaveLength(1);
  });
});

describe("a direct look", () => {
  test("default: what is found is stored, and that somebody looked", async () => {
    world.sandbox.control.seed.paymentIntent({ id: "pi_1", charge: { id: "ch_1" } });
    const look = await lookDirect(world.deps, PLATFORM_SCOPE, "pi_1");
    expect(look).toMatchObject({ found: true, lookedAt: new Date(T) });
    expect(look.reading.facts.map((fact) => fact.kind)).toEqual(["payment_intent", "charge"]);
    expect(await idsOf(world.pool, "charge")).toEqual(["ch_1"]);
    const subject = { source: "stripe", scope: PLATFORM_SCOPE, subject: "pi_1" } as const;
    expect(await latestLook(world.pool, subject)).toEqual({ found: true, lookedAt: new Date(T) });
  });

  test("behavior: a denial is noted; an account has its own objects", async () => {
    world.sandbox.control.seed.charge({ id: "ch_c", account: ACCOUNT });
    const denied = await lookDirect(world.deps, PLATFORM_SCOPE, "ch_c");
    expect(denied).toEqual({
      found: false,
      reading: { facts: [], refetch: [] },
      lookedAt: new Date(T),
    });
    expect(await lookDirect(world.deps, ACCOUNT_SCOPE, "ch_c")).toMatchObject({ found: true });
    const subject = { source: "stripe", subject: "ch_c" } as const;
    expect(await latestLook(world.pool, { ...subject, scope: PLATFORM_SCOPE })).toMatchObject({
      found: false,
    });
  });

  test("error: when Stripe cannot be asked nothing is noted", async () => {
    world.sandbox.control.fault({ kind: "error_before", count: Infinity });
    await expect(lookDirect(world.deps, PLATFORM_SCOPE, "ch_1")).rejects.toMatchObject({
      code: "server",
    });
    const subject = { source: "stripe", scope: PLATFORM_SCOPE, subject: "ch_1" } as const;
    expect(await latestLook(world.pool, subject)).toBeNull();
  });
});

describe("all attempts of a payment intent", () => {
  test("default: failed ones too, over several pages", async () => {
    world.sandbox.control.seed.paymentIntent({ id: "pi_1", charge: { id: "ch_0" } });
    for (let index = 1; index <= 120; index += 1) {
      world.sandbox.control.seed.charge({
        id: `ch_${String(index)}`,
        payment_intent: "pi_1",
        status: "failed",
      });
    }
    world.sandbox.control.seed.charge({ id: "ch_other" });
    const look = await chargesOfPaymentIntent(world.deps, PLATFORM_SCOPE, "pi_1");
    expect(look.kind === "read" && look.reading.facts).toHaveLength(121);
    expect(await idsOf(world.pool, "charge")).toHaveLength(121);
  });

  test("behavior: an intent that Stripe denies", async () => {
    world.sandbox.control.fault({ kind: "resource_missing", path: "/v1/charges" });
    const look = await chargesOfPaymentIntent(world.deps, PLATFORM_SCOPE, "pi_gone");
    expect(look).toEqual({ kind: "missing" });
  });
});
