/** Matching on chain: nonces before hashes, transfers back as refunds, operations across rails. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import {
  BRIDGED,
  CHAIN,
  PAYEE,
  PAYER,
  chain,
  chainRow,
  chainSettings,
  chargeId,
  hash,
  transfer,
  transferBack,
} from "../support/chain-rows.ts";
import { addMs } from "../../src/core/clock.ts";
import { scheduleChain } from "../../src/match/schedule-chain.ts";
import { challengeMarks } from "../../src/sources/local/challenge.ts";
import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

let world: World;

beforeAll(async () => {
  world = await openWorld();
});
beforeEach(async () => {
  await world.reset({ chains: [chainSettings()] });
  await chain(world);
});
afterAll(() => world.close());

const STRANGER = `0x${"cc".repeat(20)}`;

test("default: two nonces of one purchase are a double charge by reference (B34)", async () => {
  await chainRow(world, { id: "L1", state: "failed_retryable", nonce: "n1", reference: "/r" });
  await chainRow(world, { id: "L2", nonce: "n2", tx: "t2", reference: "/r" });
  await transfer(world, { tx: "t1", nonce: "n1", ageMs: 3_600_000 });
  await transfer(world, { tx: "t2", nonce: "n2", ageMs: 3_580_000 });
  const found = await world.judge();
  expect(found.map((one) => [one.code, one.basis])).toEqual([
    ["double_charge", "reference"],
    ["state_drift", "failed_but_paid"],
  ]);
  expect(found[0]).toMatchObject({
    charges: [chargeId("t1", 1), chargeId("t2", 1)],
    amountAtRisk: 10_000n,
    currency: "usdc",
    evidence: { gapSeconds: 20 },
  });
  expect(found[0]?.advice).toContain("only the payee can send it back");
});

test("behavior: one payment identifier, two nonces", async () => {
  await chainRow(world, { id: "L1", state: "reconciling", nonce: "n1", paymentId: "pay_1" });
  await chainRow(world, { id: "L2", nonce: "n2", paymentId: "pay_1" });
  await transfer(world, { tx: "t1", nonce: "n1" });
  await transfer(world, { tx: "t2", nonce: "n2" });
  expect(await world.judge()).toMatchObject([{ code: "double_charge", basis: "payment_id" }]);
});

test("behavior: a transfer back settles the double charge and nothing else (B36)", async () => {
  await chainRow(world, { id: "L1", nonce: "n1", reference: "o-1" });
  await transfer(world, { tx: "t1", nonce: "n1", ageMs: 300_000 });
  await transfer(world, { tx: "t2", nonce: "n2", ageMs: 200_000 });
  await chainRow(world, { id: "L2", nonce: "n2", reference: "o-1" });
  await chainRow(world, { id: "L3", nonce: "n3", reference: "o-3" });
  await transfer(world, { tx: "t3", nonce: "n3", ageMs: 100_000 });
  expect((await world.judge()).map((one) => one.code)).toEqual(["double_charge"]);
  await transferBack(world, { tx: "r1", ageMs: 0 });
  expect(await world.codes()).toEqual([]);
});

test("behavior: an operation paid by card and on chain names the later charge's money", async () => {
  await world.intent({ id: "S1", charge: "ch_1", reference: "o-1" });
  await world.charge({ id: "ch_1", amount: 500, ageMs: 7_200_000 });
  await chainRow(world, { id: "L1", nonce: "n1", reference: "o-1" });
  await transfer(world, { tx: "t1", nonce: "n1" });
  const found = (await world.judge()).filter((one) => one.code === "double_charge");
  expect(found).toMatchObject([
    { charges: ["ch_1", chargeId("t1", 1)], amountAtRisk: 10_000n, currency: "usdc" },
  ]);
});

test.each([
  ["our own wallet paid", {}, "critical", null],
  ["anybody can send to a payee", { from: STRANGER }, "info", null],
  [
    "a bridged twin is another token (B40)",
    { from: STRANGER, token: BRIDGED },
    "info",
    "other_token",
  ],
])("behavior: without a row: %s", async (_, change, severity, basis) => {
  await transfer(world, { tx: "t1", nonce: "n1", ...change });
  expect(await world.judge()).toMatchObject([{ code: "orphan_charge", severity, basis }]);
});

test("behavior: the grace of an orphan is of the chain's own time", async () => {
  await chain(world, { behindMs: 3_600_000 });
  await transfer(world, { tx: "t1", nonce: "n1", ageMs: 3_650_000 });
  expect(await world.codes()).toEqual([]);
  await chain(world, { behindMs: 0 });
  expect(await world.codes()).toEqual(["orphan_charge critical"]);
});

test.each([
  ["another payee (B35 e)", { to: STRANGER }, "payee"],
  ["less than authorised (B40 L6)", { value: 9_900 }, "amount"],
  ["one unit beyond 2^53 (B33)", { value: "9007199254740993" }, "amount"],
])("behavior: %s", async (_, change, basis) => {
  await chainRow(world, { id: "L5", nonce: "n5", amount: basis === "payee" ? 10_000 : 10_000 });
  await transfer(world, { tx: "t5", nonce: "n5", ...change });
  expect(await world.judge()).toMatchObject([{ code: "amount_mismatch", basis, intents: ["L5"] }]);
});

test("behavior: a hash that holds a bridged token is the wrong token", async () => {
  await chainRow(world, { id: "L1", tx: "t1" });
  await transfer(world, { tx: "t1", token: BRIDGED });
  expect(await world.judge()).toMatchObject([{ code: "amount_mismatch", basis: "currency" }]);
});

test("behavior: amounts beyond 2^53 agree to the last unit (B33)", async () => {
  await chainRow(world, { id: "L3", nonce: "n3", amount: "9007199254740993" });
  await transfer(world, { tx: "t3", nonce: "n3", value: "9007199254740993" });
  expect(await world.codes()).toEqual([]);
});

test("behavior: a challenge is found by the nonce or the memo that is made from it", async () => {
  const { nonce, memo } = challengeMarks("ch_abc", "api.example.com");
  const marked = memo.slice(0, 32) + "00".repeat(10) + memo.slice(32);
  await chainRow(world, { id: "L1", paymentId: "ch_abc" });
  await chainRow(world, { id: "L2", paymentId: "ch_def" });
  await transfer(world, { tx: "t1" });
  await transfer(world, { tx: "t2" });
  await world.pool.query("update tallyd.evm_transfer set memo = $1 where tx_hash = $2", [
    marked,
    hash("t1"),
  ]);
  await world.pool.query("update tallyd.charge set nonce = $1 where payment_intent = $2", [
    nonce,
    hash("t2"),
  ]);
  const marks = { L1: [null, memo], L2: [nonce, null] };
  for (const [id, [challengeNonce, challengeMemo]] of Object.entries(marks)) {
    await world.pool.query(
      "update tallyd.intent set challenge_nonce = $2, challenge_memo = $3 where intent_id = $1",
      [id, challengeNonce, challengeMemo],
    );
  }
  await world.judge();
  const placed = await world.pool.query<{ line: string }>(
    `select charge_id || ' ' || coalesce(intent_id, '-') || ' ' || coalesce(basis, '-') as line
       from tallyd.charge_match order by charge_id`,
  );
  expect(placed.rows.map((row) => row.line)).toEqual([
    `${chargeId("t1", 1)} L1 payment_id`,
    `${chargeId("t2", 1)} L2 payment_id`,
  ]);
});

test("behavior: pending transfers say nothing yet (B39)", async () => {
  await transfer(world, { tx: "t1", nonce: "n1", status: "pending" });
  await chainRow(world, { id: "L1", nonce: "n1", state: "reconciling", ageMs: 1_000 });
  expect(await world.codes()).toEqual([]);
});

test("behavior: alike payments without references are probable, unless the payee is allowed", async () => {
  for (const n of ["1", "2"]) {
    await chainRow(world, { id: `L${n}`, nonce: `n${n}` });
    await transfer(world, { tx: `t${n}`, nonce: `n${n}`, ageMs: 3_600_000 - Number(n) * 1_000 });
  }
  expect(await world.codes()).toEqual(["double_charge warning"]);
  const { rules } = world.settings;
  const allowRepeats = [{ payee: PAYEE.toUpperCase().replace("0X", "0x"), maxAmount: 10_000n }];
  await world.reset({ chains: [chainSettings()], rules: { ...rules, allowRepeats } });
  await chain(world);
  for (const n of ["1", "2"]) {
    await chainRow(world, { id: `L${n}`, nonce: `n${n}` });
    await transfer(world, { tx: `t${n}`, nonce: `n${n}`, from: PAYER });
  }
  expect(await world.codes()).toEqual([]);
});

test("behavior: what a reorganisation took away is judged when its grace is read", async () => {
  await chainRow(world, { id: "L1", nonce: "n1", tx: "t1", ageMs: 60_000 });
  await transfer(world, { tx: "t1", nonce: "n1", ageMs: 60_000, status: "failed" });
  await world.judge();
  await world.pool.query("delete from tallyd.due");
  const { rules } = world.settings;
  const read = (from: number, to: number) => ({
    scope: CHAIN,
    from: addMs(world.now, from),
    to: addMs(world.now, to),
  });
  const due = async (): Promise<number> =>
    (await world.pool.query("select from tallyd.due")).rowCount ?? 0;
  await scheduleChain(world.pool, read(-60_000, 0), { rules, now: world.now });
  expect(await due()).toBe(0);
  await scheduleChain(world.pool, read(0, 90_000), { rules, now: world.now });
  expect(await due()).toBe(1);
});
