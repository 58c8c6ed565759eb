/**
 * Goal: field cases of purchases that were paid more than once, seen from the outside.
 * Method: the rows and payments of every case in one account, each with ids, a customer and amounts
 * of its own; two passes; then each case looks at its own incidents. So no case disturbs another.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { about, openAbout, openE2e, theOpenAbout } from "./world.ts";
import type { E2e, Outcome } from "./world.ts";

const HOUR = 3_600;
const DAY = 24 * HOUR;

let world: E2e;
beforeAll(async () => {
  world = await openE2e();
});
afterAll(async () => {
  await world.close();
});

describe.each(["seed", "own"] as const)("%s table", (table) => {
  let first: Outcome;
  let second: Outcome;
  beforeAll(async () => {
    await world.fresh(table, { STRIPE_REFERENCE_KEY: "ref", STRIPE_KEY_METADATA: "idem" });
    await stageReferences();
    await stageRetries();
    await stageKeys();
    await stageShared();
    stageBurst("B05", 17);
    first = await world.once();
    stageBurst("B05", 3, 17);
    second = await world.once();
  });

  it("behavior: incidents are open, nothing is unread: exit code 3", () => {
    expect(first.exitCode).toBe(3);
    expect(first.json).toMatchObject({ failures: [] });
  });

  it("behavior: the second pass finds the same incidents and tells only what grew", () => {
    const ids = (outcome: Outcome): string[] => outcome.incidents.map((one) => one.id).sort();
    expect(ids(second)).toEqual(ids(first));
    expect(second.messages.length - first.messages.length).toBe(1);
    expect(second.rows).toEqual(first.rows);
  });

  it("B02: one order, three payments, one noted: one double charge with all three", () => {
    expect(about(first, "B02a")).toEqual(["double_charge critical"]);
    const found = theOpenAbout(first, "double_charge", "B02a");
    expect(found).toMatchObject({
      ...{ basis: "reference", status: "open", rail: "stripe", intents: ["B02a-L1"] },
      ...{ amountAtRisk: "25500", currency: "usd" },
    });
    expect([...found.charges].sort()).toEqual(["ch_B02a-1", "ch_B02a-2", "ch_B02a-3"]);
    expect(first.rows["B02a-L1"]).toMatchObject({ state: "recorded", charge_id: "ch_B02a-3" });
  });

  it("B02: different references are orphans and no double", () => {
    expect(about(first, "B02b")).toEqual(["orphan_charge warning", "orphan_charge warning"]);
    const found = openAbout(first, "B02b");
    expect(found.flatMap((one) => one.charges).sort()).toEqual(["ch_B02b-2", "ch_B02b-3"]);
    expect(found.map((one) => one.amountAtRisk)).toEqual(["12751", "12751"]);
    expect(found.flatMap((one) => one.intents)).toEqual([]);
  });

  it("B02: an orphan that carries the metadata key is critical", () => {
    expect(about(first, "B02c")).toEqual(["orphan_charge critical"]);
  });

  it("B03: a new key per retry: alike rows are a probable double", () => {
    expect(about(first, "B03a")).toEqual(["double_charge warning"]);
    const found = theOpenAbout(first, "double_charge", "B03a");
    expect(found).toMatchObject({ basis: "similar", amountAtRisk: "5000", currency: "usd" });
    expect([...found.intents].sort()).toEqual(["B03a-L1", "B03a-L2"]);
    expect([...found.charges].sort()).toEqual(["ch_B03a-1", "ch_B03a-2"]);
    // The gap names the layer that retried.
    expect(`${found.summary} ${JSON.stringify(found.evidence)}`).toMatch(/\b35\b/);
  });

  it("B03: one reference proves it, whatever keys and fingerprints say", () => {
    expect(about(first, "B03b")).toEqual(["double_charge critical"]);
    const found = theOpenAbout(first, "double_charge", "B03b");
    expect(found).toMatchObject({ basis: "reference", amountAtRisk: "5001" });
    expect([...found.intents].sort()).toEqual(["B03b-L1", "B03b-L2"]);
  });

  it("B03: one reference in the metadata is a double with both rows", () => {
    const found = theOpenAbout(first, "double_charge", "B03b");
    expect(found.amountAtRisk).toBe("5001");
    expect([...found.intents].sort()).toEqual(["B03b-L1", "B03b-L2"]);
  });

  it("B03: different references win over likeness", () => {
    expect(about(first, "B03c")).toEqual([]);
  });

  it("B05: a burst without rows is one double charge that grows in place, no orphans", () => {
    expect(about(first, "B05")).toEqual([expect.stringMatching(/^double_charge /)]);
    const burst = theOpenAbout(first, "double_charge", "B05");
    expect(burst).toMatchObject({ basis: "similar", amountAtRisk: "11200", currency: "usd" });
    expect(burst.charges).toHaveLength(17);
    expect(burst.intents).toEqual([]);
    expect(about(second, "B05")).toHaveLength(1);
    const grown = theOpenAbout(second, "double_charge", "B05");
    expect(grown).toMatchObject({ id: burst.id, amountAtRisk: "13300" });
    expect(grown.charges).toHaveLength(20);
  });

  it.each(["B09a", "B09b"])("B09: one key outside its window is a double charge (%s)", (id) => {
    expect(about(first, id)).toEqual(["double_charge critical"]);
    const found = theOpenAbout(first, "double_charge", id);
    expect(found).toMatchObject({ basis: "key", intents: [`${id}-L1`], amountAtRisk: "9900" });
    expect([...found.charges].sort()).toEqual([`ch_${id}-1`, `ch_${id}-2`]);
    // Settled: the first payment belongs to the row, but nothing is written while there are two.
    expect(first.rows[`${id}-L1`]).toMatchObject({ state: "reconciling", charge_id: null });
  });

  it("B09: proven absent past the window, the row is failed for good", async () => {
    expect(first.rows["B09c-L1"]).toMatchObject({ state: "failed_terminal", charge_id: null });
    expect(about(first, "B09c")).toEqual([]);
    const told = await world.pool.query<{ reason: string }>(
      "select reason from tallyd.resolution_list where intent = 'B09c-L1'",
    );
    expect(told.rows.map((row) => row.reason)).toEqual([expect.stringMatching(/new intent/i)]);
  });

  it("B09: proven absent inside the window, the row may be retried", () => {
    expect(first.rows["B09d-L1"]).toMatchObject({ state: "failed_retryable", charge_id: null });
    expect(about(first, "B09d")).toEqual([]);
  });

  it("B09: a payment without any mark could be the row's: absence is not claimed", () => {
    expect(first.rows["B09e-L1"]).toMatchObject({ state: "reconciling", charge_id: null });
  });

  it("B14: two rows with one charge are a local defect, and money moved once", () => {
    expect(about(first, "B14")).toEqual(["duplicate_charge_id critical"]);
    const found = theOpenAbout(first, "duplicate_charge_id", "B14");
    expect([...found.intents].sort()).toEqual(["B14-L1", "B14-L2"]);
    expect(found.charges).toEqual(["ch_B14-1"]);
    expect(["0", null]).toContain(found.amountAtRisk);
  });
});

async function stageReferences(): Promise<void> {
  const orders = [
    { id: "B02a", noted: 3, refs: ["order-50", "order-50", "order-50"], amount: 12_750 },
    { id: "B02b", noted: 1, refs: ["order-60", "order-61", "order-62"], amount: 12_751 },
  ];
  for (const { id, noted, refs, amount } of orders) {
    await world.row({
      ...{ id: `${id}-L1`, state: "recorded", amount, secondsAgo: HOUR },
      ...{ charge: `ch_${id}-${String(noted)}`, more: { reference: refs[0] } },
    });
    for (const [index, ref] of refs.entries()) {
      world.pay({
        ...{ id: `${id}-${String(index + 1)}`, amount, secondsAgo: HOUR, customer: `cus_${id}` },
        metadata: { ref },
      });
    }
  }
  const mark = { intent_id: "nobody" };
  world.pay({ id: "B02c-1", amount: 333, customer: "cus_B02c", metadata: mark });
}

async function stageRetries(): Promise<void> {
  const purchases = [
    { id: "B03a", amount: 5_000, refs: [undefined, undefined] },
    { id: "B03b", amount: 5_001, refs: ["ref9", "ref9"] },
    { id: "B03c", amount: 5_002, refs: ["ref10", "ref11"] },
  ];
  for (const { id, amount, refs } of purchases) {
    for (const [index, ref] of refs.entries()) {
      const n = String(index + 1);
      const [key, secondsAgo] = [`${id}-att-${n}`, 600 - index * 35];
      // The fingerprint of the second kind was made with a token, so it differs.
      const fingerprint = id === "B03b" ? `F${n}` : "F";
      await world.row({
        ...{ id: `${id}-L${n}`, state: "recorded", amount, key, charge: `ch_${id}-${n}` },
        ...{ secondsAgo, more: { fingerprint } },
      });
      const metadata = ref === undefined ? {} : { ref };
      world.pay({ id: `${id}-${n}`, amount, secondsAgo, key, customer: `cus_${id}`, metadata });
    }
  }
}

async function stageKeys(): Promise<void> {
  const lone = { state: "reconciling", amount: 9_900 };
  for (const id of ["B09a", "B09b"]) {
    const key = `${id}-k1`;
    const marks = id === "B09a" ? { metadata: { idem: key } } : { key };
    const paid = { amount: 9_900, customer: `cus_${id}`, ...marks };
    await world.row({ id: `${id}-L1`, ...lone, key, secondsAgo: 30 * HOUR });
    world.pay({ id: `${id}-1`, ...paid, secondsAgo: 30 * HOUR - 5 });
    world.pay({ id: `${id}-2`, ...paid, secondsAgo: 2 * HOUR });
  }
  await world.row({ id: "B09c-L1", ...lone, secondsAgo: 40 * HOUR });
  // The writer marks its payments: the one that was made beside it is another row's.
  const other = { amount: 1_234, secondsAgo: 40 * HOUR };
  await world.row({ id: "B09c-L0", state: "recorded", charge: "ch_B09c-0", ...other });
  world.pay({ id: "B09c-0", ...other, metadata: { intent_id: "B09c-L0" } });
  await world.row({ id: "B09d-L1", ...lone, secondsAgo: 3 * HOUR });
  await world.row({ id: "B09e-L1", ...lone, secondsAgo: DAY - 2 * HOUR });
  world.pay({ id: "B09x-1", amount: 777, customer: "cus_B09x", secondsAgo: DAY - 2 * HOUR });
}

async function stageShared(): Promise<void> {
  const same = { state: "recorded", amount: 411, charge: "ch_B14-1" };
  await world.row({ id: "B14-L1", ...same });
  await world.row({ id: "B14-L2", ...same });
  world.pay({ id: "B14-1", amount: 411, customer: "cus_B14" });
}

function stageBurst(id: string, count: number, from = 0): void {
  for (let index = from; index < from + count; index += 1) {
    world.pay({
      ...{ id: `${id}-${String(index)}`, amount: 700, secondsAgo: 360 - index * 3 },
      ...{ customer: `cus_${id}`, more: { description: "auto top-up" } },
    });
  }
}
