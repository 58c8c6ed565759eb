/** Goal: one row and one key for an operation, with the event that it comes from, or nothing. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { fingerprintOf, ledgerTableSql, mintIntent } from "../../src/ledger/ledger.ts";
import type { MintInput } from "../../src/ledger/ledger.ts";
import { newKey } from "../../src/ledger/key.ts";
import { fingerprintFit } from "../../src/sources/local/fingerprint.ts";
import { createOwnTable } from "../../src/sources/local/own-table.ts";
import { withTx } from "../../src/store/tx.ts";
import { openLedgerWorld, refusalOf } from "./world.ts";
import type { LedgerWorld } from "./world.ts";

let world: LedgerWorld;

beforeAll(async () => {
  world = await openLedgerWorld();
});
afterAll(() => world.close());
beforeEach(() => world.fresh("own"));

describe("mintIntent", () => {
  it("default", async () => {
    const { intent, created } = await world.mint("inv-1", {
      reference: "order-7",
      currency: "USD",
    });
    expect(created).toBe(true);
    expect(intent).toMatchObject({
      ...{ intentId: "inv-1", accountId: "acct-9", operation: "charge", state: "key_minted" },
      ...{ amount: 500n, currency: "usd", reference: "order-7", chargeId: null, response: null },
    });
    expect(intent.idempotencyKey).toMatch(/^pay_[0-9a-f-]{36}$/);
  });

  it("behavior: the fingerprint is the documented one, which tallyd reads as such", async () => {
    const { intent } = await world.mint("inv-é1");
    const fields = { intentId: "inv-é1", amount: 500n, currency: "usd" };
    expect(intent.fingerprint).toBe(fingerprintOf(fields));
    expect(fingerprintFit(intent.fingerprint!, fields)).toBe("python");
    expect(fingerprintFit(intent.fingerprint!, { ...fields, amount: 501n })).toBeNull();
  });

  it("behavior: twenty at once mint one row", async () => {
    const all = await Promise.all(Array.from({ length: 20 }, () => world.mint("inv-1")));
    expect(all.filter((one) => one.created)).toHaveLength(1);
    expect(new Set(all.map((one) => one.intent.idempotencyKey)).size).toBe(1);
  });

  it("behavior: row and business event are there together or not at all", async () => {
    await world.pool.query("create table if not exists orders (id text primary key)");
    const both = (fail: boolean): Promise<void> =>
      withTx(world.pool, async (tx) => {
        await tx.query("insert into orders values ('o-1')");
        const money = { amount: 5n, currency: "usd" };
        await mintIntent(tx, { intentId: "inv-1", accountId: "a", ...money });
        if (fail) throw new Error("the business failed");
      });
    const count = async (): Promise<unknown> =>
      (
        await world.pool.query<{ n: bigint }>(
          `select (select count(*) from orders) + (select count(*) from payment_intents) as n`,
        )
      ).rows[0]?.n;
    await expect(both(true)).rejects.toThrow("the business failed");
    expect(await count()).toBe(0n);
    await both(false);
    expect(await count()).toBe(2n);
  });

  it("behavior: other material parameters are another operation", async () => {
    const more = {
      reference: "order-7",
      request: { payment_method: "pm_1", a: [1], b: { c: 1, d: 2 } },
    };
    await world.mint("inv-1", more);
    const same = { ...more, request: { b: { d: 2, c: 1 }, a: [1], payment_method: "pm_1" } };
    expect((await world.mint("inv-1", same)).created).toBe(false);
    const others: Partial<MintInput>[] = [
      { amount: 501n },
      { currency: "eur" },
      { accountId: "b" },
      { reference: "order-8" },
      { customer: "cus_1" },
      { request: { payment_method: "pm_2" } },
      { columns: { payee: "0xabc" } },
      { operation: "refund" },
    ];
    for (const other of others) {
      const refusal = await refusalOf(world.mint("inv-1", { ...more, ...other }));
      expect([Object.keys(other)[0], refusal.code]).toEqual([Object.keys(other)[0], "conflict"]);
    }
  });

  it.each([
    ["x".repeat(256), "256 characters"],
    ["", "0 characters"],
    ["a b", "visible ASCII"],
    ["café", "visible ASCII"],
    ["pay_jenny.rosen@example.com", "e-mail"],
    ["pay_jenny.rosen%40example.com", "e-mail"],
    ["pay_4242424242424242", "card number"],
    ["pay_4242-4242-4242-4242", "card number"],
    ["pay_378282246310005", "card number"],
    ["refund_1", "is spelled as one of a refund"],
  ])("error: the key %s", async (idempotencyKey, fault) => {
    const refusal = await refusalOf(world.mint("inv-1", { idempotencyKey }));
    expect(refusal).toMatchObject({ code: "invalid" });
    expect(refusal.message).toContain(fault);
    expect((await world.pool.query("select from payment_intents")).rowCount).toBe(0);
  });

  it("behavior: keys that are ids are taken as they are", async () => {
    const keys = [
      "x".repeat(255),
      "order-1733030400000000",
      "pay:4242424242424243",
      ...Array.from({ length: 200 }, () => newKey("charge")),
    ];
    for (const [index, idempotencyKey] of keys.entries()) {
      const { intent } = await world.mint(`inv-${String(index)}`, { idempotencyKey });
      expect(intent.idempotencyKey).toBe(idempotencyKey);
    }
  });

  it.each([
    [{ amount: 0n }, "above zero"],
    [{ amount: -5n }, "above zero"],
    [{ currency: "" }, "no currency"],
    [{ accountId: "" }, "no account"],
    [{ amount: 12.5 as unknown as bigint }, "12.5 (number)"],
    [{ amount: "500" as unknown as bigint }, 'is "500": minor units'],
    [{ amount: undefined as unknown as bigint }, "undefined (undefined)"],
    [{ intentId: 7 as unknown as string }, "7 (number): give a text"],
    [{ intentId: undefined as unknown as string }, "no id"],
    [{ intentId: "order-1 " }, "blanks around it"],
    [{ intentId: "cafe\u0301-1" }, "composed form"],
    [{ intentId: "order-\ud800" }, "no character"],
    [{ currency: "usd " }, "blanks around it"],
    [{ columns: { state: "recorded", idempotency_key: "a@b.cd" } }, "state, idempotency_key"],
    [{ operation: "payout" as "charge" }, '"payout": charge, capture, refund are allowed'],
    [{ table: "nowhere" }, "there is no table"],
    [{ table: "a.b.c" }, "names no table"],
    [{ columns: { colour: "red" } }, "no column colour"],
  ] as const)("error: %o", async (more, fault) => {
    const refusal = await refusalOf(world.mint("inv-1", more));
    expect(refusal.code).toBe("invalid");
    expect(refusal.message).toContain(fault);
  });

  it("error: a key of a refund that a table without operations would read as a charge's", async () => {
    await world.fresh("seed");
    const refund = { operation: "refund", idempotencyKey: "back-1" } as const;
    const refusal = await refusalOf(world.mint("inv-1", refund));
    expect(refusal).toMatchObject({ code: "invalid" });
    expect(refusal.message).toContain("has to begin with refund_");
    expect((await world.pool.query("select from payment_intents")).rowCount).toBe(0);
    await world.mint("inv-1", { ...refund, idempotencyKey: "refund_back-1" });
    expect((await world.row("inv-1")).operation).toBe("refund");
  });

  it("behavior: an address is the same in any case", async () => {
    const columns = { payee: "0xAbCd", asset: "0xEF" };
    await world.mint("inv-1", { columns });
    const again = await world.mint("inv-1", { columns: { payee: "0xabcd", asset: "0xef" } });
    expect(again.created).toBe(false);
  });

  it("error: a table without a place for what is given says so, and stores nothing", async () => {
    await world.fresh("seed");
    const refusal = await refusalOf(world.mint("inv-1", { reference: "order-7", request: {} }));
    expect(refusal).toMatchObject({ code: "invalid" });
    expect(refusal.message).toContain("no column reference, metadata");
  });
});

describe("ledgerTableSql", () => {
  it("default: the table that tallyd makes for itself", async () => {
    await world.pool.query("drop table payment_intents; create schema if not exists shop");
    await createOwnTable(world.pool, "public.payment_intents");
    await world.pool.query(ledgerTableSql("shop.payment_intents"));
    await world.pool.query(ledgerTableSql("shop.payment_intents"));
    const shape = async (schema: string): Promise<unknown> =>
      (
        await world.pool.query(
          `select column_name, data_type, is_nullable, column_default, numeric_precision
             from information_schema.columns
            where table_schema = $1
              and table_name = 'payment_intents'
            order by ordinal_position`,
          [schema],
        )
      ).rows;
    expect(await shape("shop")).toEqual(await shape("public"));
    expect(await shape("shop")).not.toEqual([]);
    const more = { table: "shop.payment_intents" };
    expect((await world.mint("inv-1", more)).created).toBe(true);
    expect(await world.pay("inv-1", more)).toMatchObject({ state: "recorded" });
  });
});
