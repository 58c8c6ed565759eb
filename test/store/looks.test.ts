import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { latestLook, pruneLooks, recordLook } from "../../src/store/looks.ts";
import { createTestDb } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";

let db: TestDb;

beforeAll(async () => {
  db = await createTestDb();
});

afterAll(async () => {
  await db.close();
});

beforeEach(async () => {
  await db.pool.query("delete from tallyd.look");
});

const look = { source: "stripe", scope: "platform/test", subject: "pi_1" } as const;

function at(minute: number): Date {
  return new Date(Date.UTC(2026, 0, 1, 0, minute));
}

test("default: the newest look counts, whatever the order of arrival", async () => {
  expect(await latestLook(db.pool, look)).toBeNull();
  await recordLook(db.pool, { ...look, lookedAt: at(2), found: true });
  await recordLook(db.pool, { ...look, lookedAt: at(1), found: false });
  expect(await latestLook(db.pool, look)).toEqual({ lookedAt: at(2), found: true });
  await recordLook(db.pool, { ...look, lookedAt: at(3), found: false });
  expect(await latestLook(db.pool, look)).toEqual({ lookedAt: at(3), found: false });
  expect(await latestLook(db.pool, { ...look, source: "local" })).toBeNull();
});

test("behavior: old looks are forgotten, a bounded number at a time", async () => {
  for (const minute of [1, 2, 3]) {
    const subject = `pi_${String(minute)}`;
    await recordLook(db.pool, { ...look, subject, lookedAt: at(minute), found: true });
  }
  expect(await pruneLooks(db.pool, { before: at(3), limit: 1 })).toBe(1);
  expect(await pruneLooks(db.pool, { before: at(3), limit: 9 })).toBe(1);
  expect(await latestLook(db.pool, { ...look, subject: "pi_3" })).not.toBeNull();
});
