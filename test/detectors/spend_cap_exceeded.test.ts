/**
 * Caps over operations, accounts and days, judged as the daemon judges: counted, found, recorded.
 * Each case shows what passes the cap first, then what does not or what ends it.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import type { SpendCap } from "../../src/core/settings.ts";
import type { IncidentJson } from "../../src/incident/present.ts";
import { listIncidents } from "../../src/incident/present.ts";
import { chain, chainRow, transfer } from "../support/chain-rows.ts";
import { emptyTables } from "../support/db.ts";
import { judgeChanged } from "../support/judge-changed.ts";
import { testSettings } from "../support/settings.ts";
import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

let world: World;
let caps: readonly SpendCap[] = [];
let timeZone = "UTC";

beforeAll(async () => {
  world = await openWorld();
});
beforeEach(async () => {
  await world.reset();
  timeZone = "UTC";
  await emptyTables(world.pool, [
    "tallyd.incident",
    "tallyd.incident_entry",
    "tallyd.outbox",
    "tallyd.reminder",
    "tallyd.spend_charge",
    "tallyd.spend_account",
    "tallyd.spend_slot",
  ]);
});
afterAll(() => world.close());

/** Judges what changed, and nothing else; gives the open incidents of caps. */
async function judge(): Promise<readonly IncidentJson[]> {
  const base = testSettings({ timeZone });
  await judgeChanged(world, { ...base, rules: { ...base.rules, spendCaps: caps } });
  const filter = { statuses: ["open"], codes: ["spend_cap_exceeded"] } as const;
  return listIncidents(world.pool, filter, world.now);
}

/** A row and its charge, made at a time, both named by a number. */
async function pay(
  n: number,
  input: { amount: number; account?: string; at?: string; currency?: string },
): Promise<void> {
  const { amount, account = "A", currency = "usd", at = "2026-06-01T10:00:00Z" } = input;
  const ageMs = world.now.getTime() - Date.parse(at);
  const id = `ch_${String(n)}`;
  await world.intent({ id: `L${String(n)}`, charge: id, amount, account, currency, ageMs });
  await world.charge({ id, amount, currency, ageMs });
}

test("default: a purchase that was charged more than its cap", async () => {
  caps = [{ per: "operation", currency: "usd", amount: 2_000n }];
  await world.intent({ id: "L1", charge: "ch_1", reference: "o1" });
  for (const n of [1, 2, 3]) {
    await world.charge({ id: `ch_${String(n)}`, reference: "o1", ageMs: 3_600_000 - n * 1_000 });
  }
  expect(await judge()).toMatchObject([
    {
      severity: "critical",
      basis: "operation",
      scope: "platform/test",
      intents: ["L1"],
      charges: ["ch_1", "ch_2", "ch_3"],
      amountAtRisk: "1000",
      currency: "usd",
      occurredAt: "2026-06-01T11:00:03.000Z",
      evidence: { sum: "3000", cap: "2000", excess: "1000" },
    },
  ]);
});

test("behavior: a sum that just meets the cap is allowed", async () => {
  caps = [
    { per: "operation", currency: "usd", amount: 1_000n },
    { per: "account", currency: "usd", amount: 1_000n },
    { per: "day", currency: "usd", amount: 1_000n },
  ];
  await pay(1, { amount: 1_000 });
  expect(await judge()).toEqual([]);
  await pay(2, { amount: 1 });
  expect((await judge()).map((incident) => incident.basis).sort()).toEqual(["account", "day"]);
});

test("behavior: an account's cap is over all time and sees payments judged long before", async () => {
  caps = [{ per: "account", currency: "usd", amount: 1_500n }];
  await pay(1, { amount: 1_000, at: "2026-03-01T10:00:00Z" });
  await pay(2, { amount: 5_000, account: "B", currency: "eur" });
  expect(await judge()).toEqual([]);
  await pay(3, { amount: 700 });
  expect(await judge()).toMatchObject([
    {
      operation: null,
      rail: null,
      scope: null,
      basis: "account",
      intents: ["L3"],
      charges: ["ch_3"],
      amountAtRisk: "200",
      evidence: { account: "A", sum: "1700", cap: "1500", excess: "200", newestIntent: "L3" },
    },
  ]);
  // More of it is the same incident, which names the newest; another account's payment is not.
  await pay(4, { amount: 100, at: "2026-06-01T11:00:00Z" });
  await pay(5, { amount: 100, account: "C" });
  expect(await judge()).toMatchObject([{ intents: ["L4"], amountAtRisk: "300", count: 2 }]);
});

test("behavior: refunds bring the sum below the cap, and that ends it", async () => {
  caps = [
    { per: "account", currency: "usd", amount: 1_500n },
    { per: "day", currency: "usd", amount: 1_500n },
  ];
  await pay(1, { amount: 1_000 });
  await pay(2, { amount: 700 });
  expect(await judge()).toHaveLength(2);
  await world.refund({ id: "re_1", charge: "ch_2", amount: 199 });
  expect((await judge()).map((incident) => incident.amountAtRisk)).toEqual(["1", "1"]);
  await world.refund({ id: "re_2", charge: "ch_1", amount: 1 });
  expect(await judge()).toEqual([]);
  const closed = await listIncidents(world.pool, { statuses: ["closed"] }, world.now);
  expect(closed.map((incident) => incident.closedBy)).toEqual(["facts", "facts"]);
  // The refund fails later: the money is spent again.
  await world.refund({ id: "re_2", charge: "ch_1", amount: 1, status: "failed", ageMs: -60_000 });
  expect((await judge()).map((incident) => incident.amountAtRisk)).toEqual(["1", "1"]);
});

test("behavior: currencies are never added up", async () => {
  caps = [
    { per: "account", currency: "usd", amount: 1_500n },
    { per: "account", currency: "eur", amount: 5_000n },
  ];
  await pay(1, { amount: 1_500 });
  await pay(2, { amount: 5_000, currency: "eur" });
  expect(await judge()).toEqual([]);
  await pay(3, { amount: 1, currency: "eur" });
  expect(await judge()).toMatchObject([{ currency: "eur", amountAtRisk: "1" }]);
});

test("behavior: judged twice, counted once", async () => {
  caps = [{ per: "account", currency: "usd", amount: 1_500n }];
  await pay(1, { amount: 1_000 });
  await judge();
  await pay(1, { amount: 1_000 });
  await judge();
  await world.charge({ id: "ch_1", amount: 1_000, status: "failed" });
  await judge();
  await world.charge({ id: "ch_1", amount: 1_000 });
  expect(await judge()).toEqual([]);
  await pay(2, { amount: 501 });
  expect(await judge()).toMatchObject([{ evidence: { sum: "1501" } }]);
});

test("behavior: a charge that turns out to be another account's leaves the sum", async () => {
  caps = [{ per: "account", currency: "usd", amount: 1_500n }];
  await pay(1, { amount: 1_000 });
  await pay(2, { amount: 1_000 });
  expect(await judge()).toMatchObject([{ evidence: { account: "A" } }]);
  await world.pool.query("update tallyd.intent set account_id = 'B' where intent_id = 'L2'");
  await world.intent({ id: "L2", charge: "ch_2", account: "B" });
  // Judged are the operations that changed; the one that is left alone shares the account.
  await world.intent({ id: "L1", charge: "ch_1" });
  expect(await judge()).toEqual([]);
});

test("behavior: somebody else's charge is nobody's spending", async () => {
  caps = [{ per: "day", currency: "usd", amount: 999n }];
  await world.charge({ id: "ch_1", amount: 5_000, owned: "no" });
  expect(await judge()).toEqual([]);
  // Without a row it is spent all the same, by nobody known.
  await world.charge({ id: "ch_2", amount: 1_000 });
  expect(await judge()).toMatchObject([{ intents: [], charges: ["ch_2"], amountAtRisk: "1" }]);
});

test("behavior: tokens on chain count by their symbol", async () => {
  caps = [{ per: "account", currency: "usdc", amount: 1_500_000n }];
  await chain(world);
  for (const n of ["a", "b"]) {
    await chainRow(world, { id: `L${n}`, nonce: n, amount: 1_000_000 });
    await transfer(world, { tx: n, nonce: n, value: 1_000_000 });
  }
  expect(await judge()).toMatchObject([{ currency: "usdc", amountAtRisk: "500000" }]);
});

// Berlin's clock goes from 2 to 3 on 29 March and from 3 back to 2 on 25 October 2026; Havana's
// from 1 back to 0 on 1 November, so that this day begins twice.
test.each([
  ["Europe/Berlin", "2026-03-28T22:59:59Z", "2026-03-28T23:00:00Z", "2026-03-29T21:59:59Z"],
  ["Europe/Berlin", "2026-03-29T22:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T21:59:59Z"],
  ["Europe/Berlin", "2026-10-24T21:59:59Z", "2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z"],
  ["Europe/Berlin", "2026-10-25T23:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z"],
  ["America/Havana", "2026-11-01T03:59:59Z", "2026-11-01T04:00:00Z", "2026-11-02T04:59:59Z"],
  ["Asia/Kathmandu", "2026-05-31T18:14:59Z", "2026-05-31T18:15:00Z", "2026-06-01T18:14:59Z"],
])("behavior: a day in %s ends by its clock, beside %s", async (zone, outside, first, last) => {
  timeZone = zone;
  caps = [{ per: "day", currency: "usd", amount: 1_500n }];
  await pay(1, { amount: 1_000, at: outside });
  await pay(2, { amount: 1_000, at: first });
  expect(await judge()).toEqual([]);
  await pay(3, { amount: 1_000, at: last, account: "B" });
  const day = new Intl.DateTimeFormat("sv-SE", { timeZone: zone }).format(new Date(last));
  expect(await judge()).toMatchObject([
    {
      basis: "day",
      intents: ["L3"],
      amountAtRisk: "500",
      evidence: { day, timeZone: zone, sum: "2000" },
    },
  ]);
});

test("behavior: a day that is over keeps its incident until facts end it", async () => {
  caps = [{ per: "day", currency: "usd", amount: 1_500n }];
  await pay(1, { amount: 2_000, at: "2026-05-30T10:00:00Z" });
  expect(await judge()).toHaveLength(1);
  await pay(2, { amount: 100 });
  expect(await judge()).toMatchObject([{ evidence: { day: "2026-05-30" } }]);
});

test("behavior: a cap that is configured no more ends what it found", async () => {
  caps = [{ per: "account", currency: "usd", amount: 1_500n }];
  await pay(1, { amount: 2_000 });
  expect(await judge()).toHaveLength(1);
  caps = [{ per: "account", currency: "usd", amount: 3_000n }];
  await pay(2, { amount: 100, account: "B" });
  expect(await judge()).toEqual([]);
});
