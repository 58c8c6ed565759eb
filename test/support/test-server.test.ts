// Goal: a server that the tests cannot use is refused with the reason, never met as odd failures.
// Method: the run's own server, asked by roles that may do less.
import { afterAll, beforeAll, expect, inject, test } from "vitest";

import { createTestDb } from "./db.ts";
import type { TestDb } from "./db.ts";
import { ownName, testServer } from "./test-server.ts";

let db: TestDb;
beforeAll(async () => {
  db = await createTestDb({ template: "empty" });
});
afterAll(() => db.close());

test("default", async () => {
  const server = await testServer(db.url);
  expect(new URL(server.url).pathname).toBe("/postgres");
  expect(server.url).toBe(inject("testServerUrl"));
  await server.release();
  // It belongs to somebody else, so it goes on.
  expect((await db.pool.query("select 1")).rowCount).toBe(1);
});

test("error: a role that may not do everything", async () => {
  const role = ownName("plain");
  await db.pool.query(`create role ${role} login password 'plain'`);
  const url = new URL(db.url);
  url.username = role;
  url.password = "plain";
  await expect(testServer(url.href)).rejects.toThrow(/TALLYD_TEST_SERVER_URL .* superuser/);
  await db.pool.query(`drop role ${role}`);
});
