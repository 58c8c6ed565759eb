/**
 * Runs many worlds in one database through the product's own code: events by the reader and the
 * inbox, rows by the reader of the team's table, matching, judging with looks, resolving, judging
 * again. Every world has a scope, a customer and amounts of its own, so none sees another.
 */
import { addMs } from "../../src/core/clock.ts";
import type { Finding, Look } from "../../src/core/finding.ts";
import { silentLog } from "../../src/core/log.ts";
import type { Settings } from "../../src/core/settings.ts";
import { judgeOperations } from "../../src/detect/judge.ts";
import type { JudgeDeps } from "../../src/detect/judge.ts";
import { foldFindings } from "../../src/detect/fold.ts";
import type { FoldedFinding } from "../../src/detect/fold.ts";
import type { Detector } from "../../src/detect/load.ts";
import { applyInbox } from "../../src/ingest/apply.ts";
import { placeChanged } from "../../src/match/place.ts";
import { resolveDue } from "../../src/resolve/run.ts";
import type { ResolveDeps } from "../../src/resolve/deps.ts";
import { inspectLocal } from "../../src/sources/local/inspect.ts";
import { lookLocal } from "../../src/sources/local/look.ts";
import { sweep } from "../../src/sources/local/pass.ts";
import type { PassDeps } from "../../src/sources/local/pass.ts";
import { placeSettings } from "../../src/sources/local/place.ts";
import { casWrite } from "../../src/sources/local/write-row.ts";
import { readEvent } from "../../src/sources/stripe/read-event.ts";
import { readObject } from "../../src/sources/stripe/read-object.ts";
import { isReadableId } from "../../src/sources/stripe/stripe-object.ts";
import { insertEvents } from "../../src/store/inbox.ts";
import { applyFacts } from "../../src/store/mirror.ts";
import { saveProgress } from "../../src/store/sources.ts";
import { withTx } from "../../src/store/tx.ts";
import type { TestDb } from "../support/db.ts";
import type { Deliveries, Json, Listed } from "./deliveries.ts";
import { objectsOf } from "./deliveries.ts";
import { readMirrorLines } from "./mirror-lines.ts";
import type { Random } from "./random.ts";
import { emptyDatabase, insertRows, readTeamRows, tamperRows } from "./team-table.ts";
import type { TeamRow } from "./team-table.ts";
import type { World } from "./world.ts";
import { paymentsOf, rowsOf } from "./world.ts";

/** What the product said about a batch of worlds. */
export interface Outcome {
  /** What was known right before the first judgement, see `readMirrorLines`. */
  readonly mirror: readonly string[];
  readonly findings: readonly Finding[];
  /** The team's table in the end, by row id. */
  readonly rows: ReadonlyMap<string, TeamRow>;
  /** The newest decision about each row. */
  readonly decisions: ReadonlyMap<string, string>;
}

export interface Batch {
  readonly db: TestDb;
  readonly settings: Settings;
  readonly detectors: readonly Detector[];
  readonly worlds: readonly World[];
  readonly deliveries: readonly Deliveries[];
  readonly now: Date;
  /** Order and batches of delivery come from here, and nothing else does. */
  readonly order: Random;
}

const COVERED_DAYS = 60;
const DAY_MS = 86_400_000;
const APPLY_MAX = 100_000;
const CHUNK_MIN = 40;
const CHUNK_MAX = 900;
const OPERATIONS_MIN = 20;
// A judge's run speaks about a hundred absences at most; a chunk stays below that.
const OPERATIONS_MAX = 90;

/** Runs a batch on an emptied database to its end: findings, resolutions, rows. */
export async function runBatch(batch: Batch): Promise<Outcome> {
  const local = await fill(batch);
  const mirror = await readMirrorLines(batch.db);
  // Nobody else does in a test's database, and plans for empty tables are slow for full ones.
  await batch.db.pool.query("analyze");
  const place = (): Promise<void> => placeAll(batch);
  await resolveDue(resolver(batch, local, place), { all: true, limit: Number.MAX_SAFE_INTEGER });
  await sweep(local);
  await place();
  const findings = await judgeAll(batch, local);
  return {
    mirror,
    findings,
    rows: await readTeamRows(batch.db),
    decisions: await readDecisions(batch.db),
  };
}

/** Delivers a batch to an emptied database and no more: what is known of it then, as lines. */
export async function mirrorBatch(batch: Batch): Promise<string[]> {
  await fill(batch);
  return readMirrorLines(batch.db);
}

async function fill(batch: Batch): Promise<PassDeps> {
  await emptyDatabase(batch.db);
  const local = await localDeps(batch);
  await deliver(batch, local);
  await placeAll(batch);
  return local;
}

async function localDeps({ db, settings }: Batch): Promise<PassDeps> {
  const intents = { ...settings.intents, databaseUrl: db.url };
  const shape = await inspectLocal(db.pool, intents);
  const place = placeSettings(settings);
  return { own: db.pool, team: db.pool, shape, place, aheadMaxMs: settings.rules.clockSlackMs };
}

/** Events in any order and more than once, rows before, between or after them, lists in the end. */
async function deliver(batch: Batch, local: PassDeps): Promise<void> {
  const { db, order, now, worlds } = batch;
  const rows = worlds.flatMap(rowsOf);
  await insertRows(db, rows, now);
  const events = batch.deliveries.flatMap((one) => one.events);
  const again = events.filter(() => order.chance(0.15));
  const queue = order.shuffle([...events, ...again]);
  const readRowsAt = order.int(0, queue.length);
  let rowsRead = false;
  for (let from = 0; from < queue.length;) {
    const size = order.int(CHUNK_MIN, CHUNK_MAX);
    if (!rowsRead && from >= readRowsAt) {
      await sweep(local);
      rowsRead = true;
    }
    await receive(batch, queue.slice(from, from + size));
    if (order.chance(0.5)) await placeAll(batch);
    from += size;
  }
  if (!rowsRead) await sweep(local);
  if (await tamperRows(db, rows)) await sweep(local);
  await store(batch, order.shuffle(batch.deliveries.flatMap((one) => one.listed)));
  await cover(batch);
}

async function receive(batch: Batch, raw: readonly Json[]): Promise<void> {
  const { db, settings, now } = batch;
  const events = raw.map((event) => {
    const outcome = readEvent({ event, settings: settings.stripe });
    if (outcome.kind !== "event") throw new Error(`an event was read as ${outcome.kind}`);
    return outcome.event;
  });
  await insertEvents(db.pool, { events, via: "webhook", now });
  const clock = { now: () => now };
  const applied = await applyInbox({ pool: db.pool, clock, log: silentLog }, { limit: APPLY_MAX });
  if (applied.failed + applied.dead > 0) throw new Error("an event could not be applied");
}

async function store(batch: Batch, objects: readonly Listed[]): Promise<void> {
  const { settings, now } = batch;
  const version = { at: now, source: "fetch" } as const;
  const facts = objects.flatMap(({ scope, object }) => {
    const reading = readObject({ object, scope, settings: settings.stripe, version });
    if (reading.refetch.length > 0) throw new Error(`${object.id} could not be read`);
    return reading.facts;
  });
  await withTx(batch.db.pool, (tx) => applyFacts(tx, facts, now));
}

/** The lists are completely read, up to the newest minute. */
async function cover(batch: Batch): Promise<void> {
  const { db, now, settings } = batch;
  const from = addMs(now, -COVERED_DAYS * DAY_MS);
  const to = addMs(now, -settings.rules.safetyLagMs);
  const accounts = ["platform", ...settings.stripe.accounts];
  await withTx(db.pool, async (tx) => {
    for (const account of accounts) {
      for (const list of ["payment_intents", "charges"]) {
        const key = { source: `stripe.${list}`, scope: `${account}/test` };
        await saveProgress(tx, { ...key, cursor: null, coveredRange: { from, to } });
      }
    }
  });
}

async function placeAll({ db, settings, now }: Batch): Promise<void> {
  for (;;) {
    const placed = await withTx(db.pool, (tx) => placeChanged(tx, settings.rules, now));
    if (!placed.more) return;
  }
}

/** Judges every operation, in chunks of any size and order. */
async function judgeAll(batch: Batch, local: PassDeps): Promise<Finding[]> {
  const { db, order, now, settings } = batch;
  const found = new Map<string, FoldedFinding>();
  const deps: JudgeDeps = {
    pool: db.pool,
    detectors: batch.detectors,
    context: { settings, localAmountMax: null },
    now: () => Promise.resolve(now),
    look: async (look) => ((await isThere(batch, local, look)) ? "found" : "absent"),
    blindScopes: () => Promise.resolve(new Set<string>()),
    record: async ({ findings }) => {
      for (const finding of foldFindings(findings)) addOnce(found, finding);
    },
    log: silentLog,
  };
  const operations = order.shuffle(await allOperations(db));
  for (let from = 0; from < operations.length;) {
    const size = order.int(OPERATIONS_MIN, OPERATIONS_MAX);
    const chunk = operations.slice(from, from + size);
    const { unreadable } = await judgeOperations(deps, { operations: chunk, asOf: now });
    if (unreadable > 0) throw new Error("a look was not made");
    from += size;
  }
  return [...found.values()];
}

/** A group that is found again from another of its operations must be the same group. */
function addOnce(found: Map<string, FoldedFinding>, finding: FoldedFinding): void {
  const known = found.get(finding.id) ?? finding;
  for (const part of ["intents", "charges"] as const) {
    if (known[part].join(" ") === finding[part].join(" ")) continue;
    throw new Error(`${finding.code} ${finding.subject} is told in two ways: ${part}`);
  }
  found.set(finding.id, finding);
}

async function isThere(batch: Batch, local: PassDeps, look: Look): Promise<boolean> {
  if (look.source === "local") return (await lookLocal(local, look)).ids.length > 0;
  if (look.source === "evm") throw new Error("these worlds have no chain");
  return objectAt(batch, look.scope, look.id) !== undefined;
}

function objectAt(batch: Batch, scope: string, id: string): Listed | undefined {
  return batch.worlds
    .flatMap(paymentsOf)
    .filter((payment) => payment.scope === scope)
    .flatMap((payment) => objectsOf(payment, unixSeconds(batch.now)))
    .find(({ object }) => object.id === id);
}

export function unixSeconds(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}

function resolver(batch: Batch, local: PassDeps, place: () => Promise<void>): ResolveDeps {
  const { db, settings, now } = batch;
  const { rules, stripe, resolve } = settings;
  return {
    pool: db.pool,
    now: () => Promise.resolve(now),
    mode: resolve,
    rules: { ...rules, metadataKey: stripe.metadataKey },
    stripe: {
      ensureCoverage: () => Promise.resolve(),
      look: async (scope, id) => {
        const object = objectAt(batch, scope, id);
        if (object !== undefined) await store(batch, [object]);
        return { found: object !== undefined, lookedAt: now };
      },
      lookAtLists: () => Promise.resolve({ complete: true, lookedAt: now }),
      isReadable: isReadableId,
    },
    chain: () => null,
    local: {
      reread: async (intentIds) => {
        const marks = { chargeIds: [], keys: [], intentIds, references: [], nonces: [] };
        return (await lookLocal(local, marks)).rows;
      },
      write: (write) => casWrite(local, write),
      touchKnown: true,
    },
    place,
    log: silentLog,
  };
}

async function allOperations(db: TestDb): Promise<string[]> {
  const found = await db.pool.query<{ operation_id: string }>(
    `select operation_id from tallyd.intent_match
      union
     select operation_id from tallyd.charge_match
      order by operation_id`,
  );
  return found.rows.map((row) => row.operation_id);
}

async function readDecisions(db: TestDb): Promise<Map<string, string>> {
  const found = await db.pool.query<{ intent_id: string; decision: string }>(
    `select distinct on (intent_id) intent_id, decision
       from tallyd.resolution
      order by intent_id, resolution_id desc`,
  );
  return new Map(found.rows.map((row) => [row.intent_id, row.decision]));
}
