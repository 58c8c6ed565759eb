/**
 * Goal: a row is written only if it is still the one that was decided on, by one writer, and in the
 * columns that must change; and a direct look finds rows by every mark.
 * Method: real tables, rivals at once, and roles with fewer rights.
 */
import type { Pool } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { UnreadableError } from "../../../src/core/errors.ts";
import { inspectLocal } from "../../../src/sources/local/inspect.ts";
import { lookLocal } from "../../../src/sources/local/look.ts";
import { sweep } from "../../../src/sources/local/pass.ts";
import type { PassDeps } from "../../../src/sources/local/pass.ts";
import { findLackingRights } from "../../../src/sources/local/rights.ts";
import { casWrite } from "../../../src/sources/local/write-row.ts";
import type { CasWrite } from "../../../src/sources/local/write-row.ts";
import { openPool } from "../../../src/store/pool.ts";
import { withTx } from "../../../src/store/tx.ts";
import { createTestDb } from "../../support/db.ts";
import type { TestDb } from "../../support/db.ts";
import { SEED_DDL, SHOP_DDL, SHOP_FILE, emptyMirror, passDeps, settingsOf } from "./bench-table.ts";

let team: TestDb;
let own: TestDb;

beforeAll(async () => {
  team = await createTestDb({ template: "empty" });
  own = await createTestDb();
});

afterAll(async () => {
  await team.close();
  await own.close();
});

beforeEach(async () => {
  await team.pool.query("drop schema if exists shop cascade");
  await team.pool.query("drop table if exists public.payment_intents cascade");
  await emptyMirror(own.pool);
});

const RECORD: CasWrite = {
  intentId: "i1",
  expectState: "reconciling",
  set: { state: "recorded", chargeId: "ch_1", response: { id: "ch_1" }, fingerprint: "f1" },
};

async function seedRow(state = "reconciling"): Promise<PassDeps> {
  await team.pool.query(SEED_DDL);
  await team.pool.query(
    `insert into payment_intents
     values ('i1', 'shop', 500, 'usd', 'k1', $1, null, null, '2026-01-01Z', '2026-01-01 00:00:00.000123Z')`,
    [state],
  );
  return passDeps({ team: team.pool, own: own.pool });
}

async function teamRow(table = "payment_intents"): Promise<Record<string, unknown>> {
  const found = await team.pool.query<Record<string, unknown>>(`select * from ${table}`);
  return found.rows[0] ?? {};
}

describe("casWrite", () => {
  test("default: writes what it must and nothing else", async () => {
    const deps = await seedRow();
    const before = await teamRow();
    const done = await casWrite(deps, {
      ...RECORD,
      expectUpdatedAt: "2026-01-01T00:00:00.000123Z",
    });
    expect(done).toMatchObject({
      outcome: "applied",
      row: { state: "recorded", chargeId: "ch_1" },
    });
    const after = await teamRow();
    expect(after).toEqual({
      ...before,
      state: "recorded",
      charge_id: "ch_1",
      response_json: { id: "ch_1" },
      updated_at: after["updated_at"],
    });
    expect(Date.now() - (after["updated_at"] as Date).getTime()).toBeLessThan(60_000);
  });

  test("behavior: of twenty rivals exactly one is applied", async () => {
    const deps = await seedRow();
    const rivals = Array.from({ length: 20 }, (_, n) =>
      casWrite(deps, {
        ...RECORD,
        expectUpdatedAt: new Date("2026-01-01T00:00:00Z"),
        set: { ...RECORD.set, chargeId: `ch_${String(n)}` },
      }),
    );
    const outcomes = (await Promise.all(rivals)).map((result) => result.outcome);
    expect(outcomes.filter((outcome) => outcome === "applied")).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === "lost_race")).toHaveLength(19);
  });

  test.each([
    ["another state", { expectState: "in_flight" as const }],
    ["another time, by a microsecond", { expectUpdatedAt: "2026-01-01T00:00:00.000124Z" }],
    ["another time", { expectUpdatedAt: new Date("2026-01-01T00:00:01Z") }],
    ["another row", { expectRowHash: "0" }],
    ["no row", { intentId: "i2" }],
  ])("behavior: %s loses the race", async (_, change) => {
    const deps = await seedRow();
    const before = await teamRow();
    expect(await casWrite(deps, { ...RECORD, ...change })).toMatchObject({ outcome: "lost_race" });
    expect(await teamRow()).toEqual(before);
  });

  test.each(["recorded", "failed_terminal"] as const)(
    "error: %s is never written",
    async (state) => {
      const deps = await seedRow(state);
      const before = await teamRow();
      const done = await casWrite(deps, { ...RECORD, expectState: state });
      expect(done).toMatchObject({ outcome: "refused" });
      expect(await teamRow()).toEqual(before);
    },
  );

  test("behavior: the version of a row without a time of change is its hash", async () => {
    const deps = await seedRow();
    await sweep(deps);
    const found = await own.pool.query<{ row_hash: string }>("select row_hash from tallyd.intent");
    const expectRowHash = found.rows[0]?.row_hash ?? "";
    await team.pool.query("update payment_intents set amount = 501");
    const write = { ...RECORD, expectRowHash };
    expect(await casWrite(deps, write)).toMatchObject({ outcome: "lost_race" });
    await team.pool.query("update payment_intents set amount = 500");
    expect(await casWrite(deps, write)).toMatchObject({ outcome: "applied" });
  });

  test("behavior: a fingerprint is written once", async () => {
    const settings = settingsOf({});
    const shape = await inspectLocal(team.pool, settings.intents);
    const insert = `insert into payment_intents (intent_id, account_id, amount, currency,
                      idempotency_key, state, fingerprint)
                    values ('i1', 'a', 5, 'usd', 'k', 'reconciling', $1)`;
    for (const [there, wanted] of [
      [null, "f1"],
      ["mine", "mine"],
    ]) {
      await team.pool.query("delete from payment_intents");
      await team.pool.query(insert, [there]);
      const deps = { ...(await passDeps({ team: team.pool, own: own.pool })), shape };
      expect(await casWrite(deps, RECORD)).toMatchObject({ outcome: "applied" });
      expect((await teamRow())["fingerprint"]).toBe(wanted);
    }
  });

  test("behavior: a mapped table is written in the team's spelling and named columns", async () => {
    await team.pool.query(SHOP_DDL);
    await team.pool.query(
      `insert into shop.payments values (7, 100, 'EUR', null, 'UNKNOWN', null, null, null,
         '2026-01-01', '2026-01-01')`,
    );
    const settings = settingsOf({ file: SHOP_FILE });
    const deps = await passDeps({ team: team.pool, own: own.pool, settings });
    const write = { ...RECORD, intentId: "7" };
    expect(await casWrite(deps, { ...write, intentId: "seven" })).toMatchObject({
      outcome: "refused",
    });
    expect(await casWrite(deps, { ...write, set: { state: "failed_terminal" } })).toEqual({
      outcome: "refused",
      reason: "intents.states has no name for failed_terminal",
    });
    const expectUpdatedAt = "2025-12-31T23:00:00.000000Z";
    expect(await casWrite(deps, { ...write, expectUpdatedAt })).toMatchObject({
      outcome: "applied",
    });
    expect(await teamRow("shop.payments")).toMatchObject({
      status: "PAID",
      stripe_id: "ch_1",
      response: '{"id":"ch_1"}',
      modified: "2026-01-01 00:00:00",
    });
  });

  test.each([
    [
      "two rows with one id",
      `alter table payment_intents drop constraint payment_intents_pkey;
       insert into payment_intents select intent_id, account_id, amount, currency, 'k2', state,
         charge_id, response_json, created_at, updated_at from payment_intents`,
      "2 rows have this id",
    ],
    [
      "a constraint of the team's",
      "alter table payment_intents add constraint brake check (state <> 'recorded')",
      "brake",
    ],
    [
      "a trigger of the team's",
      `create or replace function public.brake() returns trigger language plpgsql
         as $$ begin new.state := old.state; return new; end $$;
       create trigger brake before update on payment_intents
         for each row execute function public.brake()`,
      "a trigger or rule changed it",
    ],
  ])("error: %s refuses the write", async (_, change, reason) => {
    const deps = await seedRow();
    await team.pool.query(change);
    const before = await team.pool.query("select * from payment_intents");
    const done = await casWrite(deps, RECORD);
    expect(done).toMatchObject({
      outcome: "refused",
      reason: expect.stringContaining(reason) as string,
    });
    expect((await team.pool.query("select * from payment_intents")).rows).toEqual(before.rows);
  });

  /** The catalogue names exactly what is lacking, and the statement that it names gives it. */
  async function expectLacking(pool: Pool, role: string, columns: readonly string[]) {
    const { intents } = settingsOf({});
    const list = columns.join(", ");
    const lacking = await findLackingRights(pool, intents);
    expect(lacking).toEqual({
      relation: "public.payment_intents",
      role,
      columns,
      text: `the role ${role} has no UPDATE right on ${list} of public.payment_intents`,
      grant: `grant update (${list}) on public.payment_intents to ${role}`,
    });
    expect((await inspectLocal(pool, intents)).lackingRights).toEqual(lacking);
    await withTx(team.pool, async (tx) => {
      await tx.query(lacking?.grant ?? "");
      const found = await tx.query(
        `select 1 from unnest($1::text[]) as c
          where not has_column_privilege($2, 'payment_intents', c, 'update')`,
        [columns, role],
      );
      expect(found.rows).toEqual([]);
      await tx.query("rollback");
    });
  }

  test("behavior: a role that may only read: reads work, writes are refused", async () => {
    await seedRow();
    const role = `reader_${String(process.pid)}`;
    await team.pool.query(`create role ${role} login password 'reader'`);
    const url = new URL(team.url);
    url.username = role;
    url.password = "reader";
    const pool = openPool({ url: url.href, applicationName: "tallyd-test", max: 2 });
    const settings = settingsOf({});
    try {
      await expect(inspectLocal(pool, settings.intents)).rejects.toThrow(
        `INTENTS_TABLE: public.payment_intents is there, and the role ${role} may not read its ` +
          "columns intent_id, account_id, amount, currency, state, created_at; allowed: " +
          `grant select on public.payment_intents to ${role}`,
      );
      await team.pool.query(`grant select on payment_intents to ${role}`);
      await expectLacking(pool, role, ["state", "charge_id", "response_json", "updated_at"]);
      await team.pool.query(`grant update (state, updated_at) on payment_intents to ${role}`);
      await expectLacking(pool, role, ["charge_id", "response_json"]);
      await team.pool.query(`revoke update (state, updated_at) on payment_intents from ${role}`);
      const deps = await passDeps({ team: pool, own: own.pool, settings });
      expect(await sweep(deps)).toMatchObject({ read: 1, changed: 1 });
      expect(await casWrite(deps, RECORD)).toEqual({
        outcome: "refused",
        reason: expect.stringContaining("no UPDATE right on state") as string,
      });
      await team.pool.query(`revoke select on payment_intents from ${role}`);
      await expect(sweep(deps)).rejects.toMatchObject({ code: "rights" });
      await expect(sweep(deps)).rejects.toBeInstanceOf(UnreadableError);
    } finally {
      await pool.end();
      await team.pool.query(`drop owned by ${role}; drop role ${role}`);
    }
  });
});

describe("lookLocal", () => {
  const NOTHING = { chargeIds: [], keys: [], intentIds: [], references: [], nonces: [] };

  test.each([
    ["its id", { intentIds: ["i1"] }, 1],
    ["its key", { keys: ["other", "k1"] }, 1],
    ["its charge id", { chargeIds: ["ch_9", "ch_7"] }, 1],
    ["a reference, which the table lacks", { references: ["o-1"] }, 0],
    ["a mark of nobody", { keys: ["none"], intentIds: ["i2"] }, 0],
    ["no mark", {}, 0],
  ])("behavior: by %s", async (_, marks, count) => {
    const deps = await seedRow();
    await team.pool.query("update payment_intents set charge_id = 'ch_7'");
    const look = await lookLocal(deps, { ...NOTHING, ...marks });
    expect(look.rows).toHaveLength(count);
    const stored = await own.pool.query("select 1 from tallyd.intent");
    expect(stored.rowCount).toBe(count);
  });

  test("behavior: a row that cannot be used is still found", async () => {
    const deps = await seedRow("PAID");
    const look = await lookLocal(deps, { ...NOTHING, keys: ["k1"] });
    expect(look).toMatchObject({
      rows: [],
      ids: ["i1"],
      faults: [{ intentId: "i1", kept: false }],
    });
  });

  test("behavior: an id that the column cannot hold asks nothing of it", async () => {
    await team.pool.query(SHOP_DDL);
    const deps = await passDeps({
      team: team.pool,
      own: own.pool,
      settings: settingsOf({ file: SHOP_FILE }),
    });
    const look = await lookLocal(deps, { ...NOTHING, intentIds: ["inv-1"], references: ["o-1"] });
    expect(look.rows).toEqual([]);
  });

  test("behavior: an older snapshot does not overwrite a newer look", async () => {
    const deps = await seedRow();
    await sweep(deps);
    await own.pool.query(
      "update tallyd.intent set seen_at = now() + interval '1 minute', row_hash = 'x'",
    );
    expect(await sweep(deps)).toMatchObject({ changed: 0 });
    await own.pool.query("update tallyd.intent set seen_at = now() + interval '1 hour'");
    expect(await sweep(deps)).toMatchObject({ changed: 1 });
  });
});
