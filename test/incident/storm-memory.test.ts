// Goal: a storm costs memory by the batch and not by its size, tells at most ten messages, and
// leaves nothing out of the list. Method: 10,000 findings in the batches that the judge makes,
// delivered to Slack's stand-in meanwhile; the heap after full collections at 2,000 and at 10,000.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import { afterAll, beforeAll, expect, test } from "vitest";

import { deliverDue } from "../../src/alert/deliver.ts";
import { createSlackSend } from "../../src/alert/slack.ts";
import { silentLog } from "../../src/core/log.ts";
import { recordFindings } from "../../src/incident/record.ts";
import type { SlackSandbox } from "../../src/sandbox/slack/server.ts";
import { startSlackSandbox } from "../../src/sandbox/slack/server.ts";
import { eachIncident } from "../../src/store/incident-list.ts";
import type { TestDb } from "../support/db.ts";
import { createTestDb } from "../support/db.ts";
import { ALL_JUDGED, at, makeNumbered } from "./make.ts";

const BATCH = 500;
const TOTAL = 10_000;
const EARLY = 2_000;
// What is kept per finding would be a multiple: 8,000 more findings are some 20 MB.
const GROWTH_MAX = 1.1;

let db: TestDb;
let slack: SlackSandbox;
let now = 0;
beforeAll(async () => {
  db = await createTestDb();
  slack = await startSlackSandbox({ now: () => at(now).getTime() });
});
afterAll(async () => {
  await slack.close();
  await db.close();
});

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** Bytes that are alive. */
function heap(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

test("default: memory flat, at most ten messages, none missing from the list", async () => {
  const settings = { slackWebhookUrl: "set", slackCriticalWebhookUrl: null, publicUrl: null };
  const hooks = { slack: createSlackSend(slack.webhookUrl), slackCritical: null };
  const alive = new Map<number, number>();
  for (let from = 0; from < TOTAL; from += BATCH) {
    const findings = Array.from({ length: BATCH }, (_, index) => makeNumbered(from + index));
    const operations = new Set(findings.map((finding) => finding.subject));
    const input = { findings, judged: { ...ALL_JUDGED, operations }, now: at(now) };
    await recordFindings({ pool: db.pool, settings }, input);
    await deliver();
    now += 5;
    alive.set(from + BATCH, heap());
  }
  now += 60;
  await deliver();
  expect(alive.get(TOTAL)! / alive.get(EARLY)!).toBeLessThan(GROWTH_MAX);

  const texts = slack.control.messages.map((message) => message.text ?? "");
  expect(texts.length).toBeLessThanOrEqual(10);
  const counts = texts.map((text) => Number(/^(\d+) alerts in one message/.exec(text)?.[1] ?? 0));
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(TOTAL);
  const listed = new Set<string>();
  for await (const { id } of eachIncident(db.pool, {}, at(now))) listed.add(id);
  expect(listed.size).toBe(TOTAL);

  async function deliver(): Promise<void> {
    const deps = { pool: db.pool, now: () => Promise.resolve(at(now)), log: silentLog, paceMs: 1 };
    await deliverDue({ ...deps, hooks }, { limit: 30 });
  }
  // Ten thousand rows take seconds when other test files keep the machine busy.
}, 90_000);
