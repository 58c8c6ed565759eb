/**
 * A full audit, all detectors over every operation, against one bare full join of the two tables
 * with the mismatch filter; and a pass over 1,000 changes with little and with much history.
 */
import type { Pool } from "pg";

import { systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/log.ts";
import { auditAll, judgeDue } from "../../src/detect/judge.ts";
import type { JudgeDeps } from "../../src/detect/judge.ts";
import { loadDetectors } from "../../src/detect/load.ts";
import { recordFindings } from "../../src/incident/record.ts";
import { placeChanged } from "../../src/match/place.ts";
import { withTx } from "../../src/store/tx.ts";
import { testSettings } from "../support/settings.ts";
import type { BenchWorld, Measured } from "./bench.ts";
import { freshDatabase, seconds } from "./database.ts";

// The aim is told for a million of each; BENCH_ROWS sets another number.
const ROWS = Number(process.env["BENCH_ROWS"] ?? "200000");
const CHANGES = 1_000;

export async function fill(pool: Pool, rows: number): Promise<void> {
  const at = "timestamptz '2026-01-01' + n * interval '1 second'";
  await pool.query(
    `insert into tallyd.intent (intent_id, account_id, rail, scope, amount, currency, idempotency_key,
       state, raw_state, charge_id, reference, created_at, updated_at, row_hash, first_seen_at, seen_at)
     select 'in_' || n, 'A', 'stripe', 'platform/test', 1000 + n % 900, 'usd', 'key-' || n, 'recorded',
            'recorded', 'ch_' || n, 'o-' || n, ${at}, ${at}, md5(n::text), ${at}, ${at}
       from generate_series(1, $1::int) as n`,
    [rows],
  );
  await pool.query(
    `insert into tallyd.charge (scope, charge_id, rail, payment_intent, amount, amount_captured, currency,
       status, captured, payer, intent_mark, reference, created_at, version_at, version_rank)
     select 'platform/test', 'ch_' || n, 'stripe', 'pi_' || n, 1000 + n % 900, 1000 + n % 900, 'usd',
            'succeeded', true, 'cus_' || n % 5000, 'in_' || n, 'o-' || n, ${at}, ${at}, 1
       from generate_series(1, $1::int) as n`,
    [rows],
  );
  await pool.query(
    `insert into tallyd.intent_match (intent_id, operation_id, reference)
     select intent_id, 'ref:A:' || reference, reference from tallyd.intent`,
  );
  await pool.query(
    `insert into tallyd.charge_match (scope, charge_id, operation_id, intent_id, basis, alike_key)
     select scope, charge_id, 'ref:A:' || reference, intent_mark, 'charge_id',
            md5(jsonb_build_array(payer, payee, amount::text, currency, purpose)::text)
       from tallyd.charge`,
  );
  await pool.query("analyze");
}

function judgeDepsOf(pool: Pool): JudgeDeps {
  const settings = testSettings();
  return {
    pool,
    detectors: loadDetectors(),
    context: { settings, localAmountMax: null },
    now: () => Promise.resolve(systemClock.now()),
    look: () => Promise.resolve("found"),
    blindScopes: () => Promise.resolve(new Set<string>()),
    record: (input) => recordFindings({ pool, settings }, input),
    log: silentLog,
  };
}

const FLOOR = `
select count(*) as n
  from tallyd.intent i
  full join tallyd.charge c on c.scope = i.scope and c.charge_id = i.charge_id
 where i.intent_id is null
    or c.charge_id is null
    or i.amount <> c.amount
    or i.currency <> c.currency
    or (i.state = 'recorded') <> (c.status = 'succeeded')`;

async function incremental(pool: Pool, deps: JudgeDeps): Promise<number> {
  await pool.query(
    `insert into tallyd.changed (kind, scope, id)
     select 'charge', 'platform/test', 'ch_' || n from generate_series(1, $1::int) as n`,
    [CHANGES],
  );
  const { rules } = testSettings();
  return seconds(async () => {
    await withTx(pool, (tx) => placeChanged(tx, rules, systemClock.now()));
    while ((await judgeDue(deps)).more);
  });
}

/** The bench. */
export async function benchAudit(world: BenchWorld): Promise<readonly Measured[]> {
  const small = await freshDatabase(world.serverUrl, "bench_small");
  await fill(small, ROWS / 10);
  const large = await freshDatabase(world.serverUrl, "bench_audit");
  world.say(`filling ${String(ROWS)} rows and charges`);
  await fill(large, ROWS);
  await large.query(FLOOR);
  const floor = await seconds(() => large.query(FLOOR));
  const deps = judgeDepsOf(large);
  const figure = await seconds(() => auditAll(deps));
  await incremental(small, judgeDepsOf(small));
  const little = await incremental(small, judgeDepsOf(small));
  await incremental(large, deps);
  const much = await incremental(large, deps);
  await small.end();
  await large.end();
  return [
    {
      name: `audit: ${String(ROWS)} rows and charges`,
      figure: `${figure.toFixed(2)} s`,
      floor: `${floor.toFixed(2)} s`,
      ratio: figure / floor,
      aim: "within 4 at 1,000,000",
    },
    {
      name: `pass over ${String(CHANGES)} changes, ten times the history`,
      figure: `${(much * 1_000).toFixed(0)} ms`,
      floor: `${(little * 1_000).toFixed(0)} ms`,
      ratio: much / little,
      aim: "within 1.5",
    },
  ];
}
