/**
 * Goal: columns of many rows reach PostgreSQL as they are, and nothing else does.
 * Method: spelled here, read by a real server.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { joinArrays, plainArray } from "../../src/store/plain-array.ts";
import { createTestDb } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";

let db: TestDb;

beforeAll(async () => {
  db = await createTestDb({ template: "empty" });
});
afterAll(() => db.close());

async function read(array: string, type: string): Promise<unknown> {
  const found = await db.pool.query<{ value: unknown }>(
    `select to_jsonb($1::text::${type}[]) as value`,
    [array],
  );
  return found.rows[0]?.value;
}

describe("plainArray", () => {
  test("default: hashes, names, nulls, numbers and times", async () => {
    const texts = [`0x${"ab".repeat(32)}`, "eip155:31337:0x1:2", null, "charge", "-"];
    expect(await read(plainArray(texts), "text")).toEqual(texts);
    expect(await read(plainArray([1, -2, null]), "integer")).toEqual([1, -2, null]);
    expect(await read(plainArray([10n ** 70n]), "numeric")).toHaveLength(1);
    const time = new Date(1_700_000_000_123).toISOString();
    expect(await read(plainArray([time]), "timestamptz")).toEqual([
      expect.stringContaining(".123"),
    ]);
    expect(await read(plainArray([]), "text")).toEqual([]);
  });

  test.each(["", " ", "a b", "a,b", "{", '"', "\\", "null", "NULL", "a\n", "é", "a'b"])(
    "error: %j needs quotes",
    (value) => {
      expect(() => plainArray(["x", value])).toThrow("needs quotes");
    },
  );

  test("default: two arrays as one", () => {
    expect(joinArrays("{}", "{a}")).toBe("{a}");
    expect(joinArrays("{a}", "{}")).toBe("{a}");
    expect(joinArrays("{a,b}", "{c}")).toBe("{a,b,c}");
    expect(joinArrays("{}", "{}")).toBe("{}");
  });
});
