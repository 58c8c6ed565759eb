/** A flood of equal symptoms is one finding about the configuration. Cases B18, B33, B45. */
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

import { addMs } from "../../src/core/clock.ts";
import { noteLackingRights } from "../../src/store/tallies.ts";
import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

let world: World;

beforeAll(async () => {
  world = await openWorld();
});
beforeEach(() => world.reset());
afterAll(() => world.close());

async function tally(name: string, streak: number, recent: readonly number[] = []): Promise<void> {
  await world.pool.query(
    `insert into tallyd.tally (name, total, streak, last_at, detail)
     values ($1, $2, $2, $3, $4)
     on conflict (name, scope) do update set streak = excluded.streak`,
    [name, streak, world.now, JSON.stringify({ recent })],
  );
}

async function errors(): Promise<(string | null)[]> {
  const findings = await world.judgeSources();
  return findings.filter((f) => f.code === "config_error").map((f) => f.basis);
}

test("behavior: a right that the resolver lacks, until it is granted", async () => {
  const lacking = {
    relation: "public.payment_intents",
    role: "tallyd_owner",
    columns: ["state", "charge_id"],
    grant: "grant update (state, charge_id) on public.payment_intents to tallyd_owner",
  };
  await noteLackingRights(world.pool, lacking, world.now);
  await noteLackingRights(world.pool, lacking, addMs(world.now, 60_000));
  const [found] = await world.judgeSources();
  expect(found).toMatchObject({ subject: "local:rights", basis: "rights", severity: "warning" });
  expect(found?.occurredAt).toEqual(world.now);
  expect(found?.summary).toContain(
    "role tallyd_owner has no UPDATE right on state, charge_id of public.payment_intents",
  );
  expect(found?.advice).toContain(lacking.grant);
  await noteLackingRights(world.pool, null, world.now);
  expect(await errors()).toEqual([]);
});

test("default: signatures that never fit, until one does", async () => {
  await tally("signature_failure", 4);
  expect(await errors()).toEqual([]);
  await tally("signature_failure", 40);
  const [finding] = await world.judgeSources();
  expect(finding).toMatchObject({ code: "config_error", severity: "warning", basis: "signature" });
  expect(finding?.advice).toContain("STRIPE_WEBHOOK_SECRET");
  await tally("signature_failure", 0);
  expect(await errors()).toEqual([]);
});

test("behavior: right signatures with a stable offset are a clock (B18 b)", async () => {
  await tally("stale_valid", 10, [395, 400, 405, 398, 402, 400, 401, 399, 403, 400]);
  const [finding] = await world.judgeSources();
  expect(finding).toMatchObject({ basis: "clock_skew", evidence: { offsetSeconds: 400 } });
  expect(finding?.summary).toContain("clock skew about 400 s");
});

test("behavior: a refused key is told once, whatever the number of its sources (B26)", async () => {
  await world.pool.query(
    `insert into tallyd.source (source, scope, failing_since, failures, last_error, last_error_code)
     select s, 'platform/test', $1, 1, 'Invalid API Key', 'auth'
       from unnest(array['stripe.events', 'stripe.charges', 'stripe.payment_intents']) as s`,
    [world.now],
  );
  expect(await errors()).toEqual(["key_refused"]);
});

test("behavior: events of the other mode and of foreign accounts", async () => {
  await tally("other_mode", 3);
  await tally("foreign_account", 2);
  const findings = await world.judgeSources();
  expect(findings.map((f) => [f.basis, f.severity])).toEqual([
    ["foreign_account", "info"],
    ["wrong_mode", "warning"],
  ]);
});

test("behavior: rows that cannot be read", async () => {
  await world.pool.query(
    `insert into tallyd.intent_fault (intent_id, kept, faults, first_at, at)
     values ('L1', false, '[{"field": "state", "seen": "PAID"}]', $1, $1)`,
    [world.now],
  );
  expect(await errors()).toEqual(["rows"]);
});

test("behavior: rows in the future are a zone and no age (B45)", async () => {
  await world.intent({ id: "L2", state: "in_flight", ageMs: -3 * 3_600_000 });
  expect(await errors()).toEqual(["time"]);
  expect(await world.judge()).toEqual([]);
});

test("behavior: an amount that the column cannot hold (B33)", async () => {
  await world.charge({ id: "ch_2", amount: 3_000_000_000n, currency: "vnd" });
  expect(await errors()).toEqual([]);
  const context = { localAmountMax: 2_147_483_647n };
  const findings = await world.judgeSources(context);
  expect(findings.map((f) => f.basis)).toEqual(["narrow_column"]);
  const [orphan] = await world.judge(0, context);
  expect(orphan).toMatchObject({
    code: "orphan_charge",
    evidence: { hint: "exceeds column type" },
  });
});

test("behavior: a dead Slack hook", async () => {
  await world.pool.query(
    `insert into tallyd.hook (channel, failing_since, failures, last_error, last_error_code)
     values ('slack', $1, 1, '404 no_service', 'dead')`,
    [world.now],
  );
  expect(await errors()).toEqual(["dead_hook"]);
});
