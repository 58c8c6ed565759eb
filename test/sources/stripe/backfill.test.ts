import { afterEach, beforeEach, expect, test } from "vitest";
import { backfill } from "../../../src/sources/stripe/backfill.ts";
import type { BackfillProgress } from "../../../src/sources/stripe/backfill.ts";
import { coverage } from "../../../src/store/sources.ts";
import {
  DAY,
  HOUR,
  idsOf,
  MINUTE,
  openStripeWorld,
  PLATFORM_SCOPE,
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

const since = new Date(T - 100 * DAY);

/** Intents with a charge each, evenly over the last hundred days. */
function seed(count: number): string[] {
  world.sandbox.control.seed.bulk(count, (index) => ({
    id: `pi_${String(index).padStart(5, "0")}`,
    created: secondsAt(-((index + 0.5) * 100 * DAY) / count),
    events: false,
  }));
  return Array.from({ length: count }, (_, index) => `pi_${String(index).padStart(5, "0")}`);
}

test("default: every list is read, and the progress runs from nothing to all", async () => {
  const ids = seed(450);
  const charge = world.sandbox.control.seed.charge({ id: "ch_x", created: secondsAt(-DAY) });
  world.sandbox.control.seed.refund({ charge: charge.id, created: secondsAt(-HOUR) });
  world.sandbox.control.dispute("ch_x");
  const seen: BackfillProgress[] = [];
  const onProgress = (progress: BackfillProgress): void => {
    seen.push(progress);
  };
  world.clock.ms = T + 2 * MINUTE;
  const result = await backfill(world.deps, { since, onProgress });
  expect(result).toMatchObject({ ok: true, objects: 450 + 451 + 1 + 1 });
  expect(await idsOf(world.pool, "payment_intent")).toEqual(ids);
  expect(await idsOf(world.pool, "charge")).toHaveLength(451);
  const fractions = seen.map((progress) => progress.fraction);
  expect(fractions).toEqual([...fractions].sort((a, b) => a - b));
  expect(fractions[0]).toBeGreaterThan(0);
  expect(fractions.at(-1)).toBe(1);
  expect(seen.at(-1)).toMatchObject({ objects: result.objects, pages: result.pages });
  for (const list of ["payment_intents", "charges", "refunds", "disputes"]) {
    const key = { source: `stripe.${list}`, scope: PLATFORM_SCOPE };
    expect(await coverage(world.pool, key)).toEqual([{ from: since, to: new Date(T + MINUTE) }]);
  }
});

test("behavior: stopped in the middle, it goes on where it was", async () => {
  // Up to twenty pages are on their way when a report comes: the end must be farther off.
  const ids = seed(7_500);
  const stop = new AbortController();
  const resources = ["payment_intents"] as const;
  const stopped = backfill(world.deps, {
    since,
    resources,
    signal: stop.signal,
    onProgress: ({ objects }) => {
      if (objects > 5_000) stop.abort();
    },
  });
  await expect(stopped).rejects.toMatchObject({ name: "AbortError" });
  const key = { source: "stripe.payment_intents", scope: PLATFORM_SCOPE };
  const [covered] = await coverage(world.pool, key);
  // The first part of 50 pages is proven, the pages after it are stored and will be read again.
  expect(covered?.from.getTime()).toBeGreaterThan(since.getTime() + 28 * DAY);
  const before = await idsOf(world.pool, "payment_intent");
  expect(before.length).toBeGreaterThan(5_000);
  expect(before.length).toBeLessThan(7_500);

  const again = await backfill(world.deps, { since, resources });
  expect(again.objects).toBeLessThan(2_700);
  expect(await idsOf(world.pool, "payment_intent")).toEqual(ids);
  expect(await coverage(world.pool, key)).toEqual([{ from: since, to: new Date(T - MINUTE) }]);
});

test("behavior: a list that fails is named, the others are read", async () => {
  seed(20);
  world.sandbox.control.fault({ kind: "error_before", path: "/v1/charges", count: Infinity });
  const result = await backfill(world.deps, { since });
  expect(result.ok).toBe(false);
  expect(result.failed).toMatchObject([{ source: "stripe.charges", code: "server" }]);
  expect(await idsOf(world.pool, "payment_intent")).toHaveLength(20);
});

test("behavior: until bounds it, and a second run reads nothing", async () => {
  seed(20);
  const until = new Date(T - 50 * DAY);
  await backfill(world.deps, { since, until, resources: ["payment_intents"] });
  expect(await idsOf(world.pool, "payment_intent")).toHaveLength(10);
  world.sandbox.control.clearRequests();
  await backfill(world.deps, { since, until, resources: ["payment_intents"] });
  expect(world.sandbox.control.requests).toEqual([]);
});
