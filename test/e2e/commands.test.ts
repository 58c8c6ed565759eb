/**
 * Goal: the commands of the outside contract: what people do with incidents, `explain`, the modes
 * of
 * resolving, audit, backfill, the views, a mapped table, and the real process.
 */
import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { openE2e, openOf, theOpen } from "./world.ts";
import type { E2e, Outcome } from "./world.ts";

const HOUR = 3_600;
const DAY = 24 * HOUR;
const ROOT = path.join(import.meta.dirname, "../..");
const runFile = promisify(execFile);

let world: E2e;
beforeAll(async () => {
  world = await openE2e();
});
afterAll(async () => {
  await world.close();
});
beforeEach(async () => {
  await world.fresh("seed");
});

/** One row that was charged `count` times. */
async function double(count = 2): Promise<Outcome> {
  await world.row({ id: "L1", state: "recorded", charge: "ch_1", amount: 1_500 });
  for (let n = 1; n <= count; n += 1) again(n, 900 - n);
  return world.once();
}

function again(n: number, secondsAgo: number): void {
  const metadata = { intent_id: "L1" };
  world.pay({ id: String(n), amount: 1_500, customer: "cus_1", metadata, secondsAgo });
}

describe("incidents", () => {
  it("default: list and show give the contract's fields", async () => {
    const found = await double();
    const id = theOpen(found, "double_charge").id;
    const listed = (await world.run("incidents", "list")).json as Record<string, unknown>[];
    expect(listed).toHaveLength(1);
    expect(listed[0]).toMatchObject({
      ...{ id, code: "double_charge", severity: "critical", status: "open", basis: "intent" },
      ...{ rail: "stripe", intents: ["L1"], charges: ["ch_1", "ch_2"], amountAtRisk: "1500" },
      ...{ currency: "usd", count: expect.any(Number) as number },
    });
    for (const name of ["scope", "operation", "firstSeen", "lastSeen", "summary", "advice"]) {
      expect(typeof listed[0]?.[name]).toBe("string");
    }
    expect(typeof listed[0]?.["evidence"]).toBe("object");
    const shown = await world.run("incidents", "show", id);
    expect(shown.exitCode).toBe(0);
    expect(shown.json).toMatchObject({ id, history: [{ step: "opened", actor: "tallyd" }] });
  });

  it("behavior: acknowledged still counts, muted does not, and a mute may end", async () => {
    const id = theOpen(await double(), "double_charge").id;
    const acked = await world.run("incidents", "ack", id, "--note", "on it");
    expect(acked.exitCode).toBe(0);
    expect(acked.json).toMatchObject({ id, status: "acknowledged" });
    expect((await world.run("once")).exitCode).toBe(3);
    const muted = await world.run("incidents", "mute", id, "--for", "24h");
    expect(muted.json).toMatchObject({ id, status: "muted" });
    expect((await world.run("once")).exitCode).toBe(0);
    await world.pool.query("update tallyd.incident set muted_until = now() - interval '1 second'");
    expect((await world.run("once")).exitCode).toBe(3);
  });

  it("behavior: a person's closing lasts for these facts, and a third charge reopens", async () => {
    const id = theOpen(await double(), "double_charge").id;
    const closed = await world.run("incidents", "close", id, "--note", "not a duplicate");
    expect(closed.json).toMatchObject({ id, status: "closed", closedBy: "person" });
    const quiet = await world.once();
    expect(quiet).toMatchObject({ exitCode: 0, open: [] });
    const back = await world.run("incidents", "reopen", id);
    expect(back.json).toMatchObject({ id, status: "open", closedBy: null });
    expect((await world.run("incidents", "reopen", id)).exitCode).toBe(2);
    await world.run("incidents", "close", id);
    again(3, 150);
    const reopened = await world.once();
    expect(theOpen(reopened, "double_charge")).toMatchObject({ id, amountAtRisk: "3000" });
    expect(reopened.exitCode).toBe(3);
    expect(reopened.messages.length).toBeGreaterThan(quiet.messages.length);
  });
});

describe("explain", () => {
  it("default: one purchase by any of its ids, with the six answers", async () => {
    await world.row({ id: "L1", state: "reconciling", key: "k1", amount: 1_700, secondsAgo: HOUR });
    const marks = { metadata: { intent_id: "L1" }, key: "k1" };
    world.pay({ id: "1", amount: 1_700, secondsAgo: HOUR - 2, ...marks });
    world.stripe.control.seed.refund({ id: "re_1", charge: "ch_1", amount: 100n });
    await world.once();
    const answers = await Promise.all(
      ["L1", "ch_1", "pi_1", "re_1", "k1"].map((id) => world.run("explain", id)),
    );
    for (const { exitCode, json } of answers) {
      expect(exitCode).toBe(0);
      expect(json).toMatchObject({
        intent: { id: "L1", amount: "1700", state: "recorded" },
        charges: [{ id: "ch_1", amount: "1700", net: "1600" }],
        refunds: [{ id: "re_1", amount: "100" }],
        resolutions: [{ intent: "L1", decision: "recorded", outcome: "applied" }],
        incidents: [],
      });
      const { events, coverage, contract } = json as Record<string, unknown>;
      expect(Array.isArray(events) && events.length).toBeGreaterThan(2);
      expect(Array.isArray(coverage) && coverage.length).toBeGreaterThan(0);
      expect(Object.keys(contract as object).sort()).toEqual([
        ...["admission", "binding", "identity", "operation", "retention", "uncertainty"],
      ]);
    }
  });
});

describe("report", () => {
  const DAY_OF = (secondsAgo: number): string =>
    new Date(Date.now() - secondsAgo * 1_000).toISOString().slice(0, 10);

  it("default: the last whole day, with the exit codes of the others", async () => {
    const old = { amount: 1_500, secondsAgo: 2 * DAY };
    await world.row({ id: "L1", state: "recorded", charge: "ch_1", ...old });
    world.pay({ id: "1", ...old, metadata: { intent_id: "L1" } });
    world.env["FIRST_LOOKBACK"] = "5d";
    expect((await world.run("report")).exitCode).toBe(4);
    await world.once();
    const ran = await world.run("report");
    expect(ran.exitCode).toBe(0);
    expect(ran.json).toMatchObject({
      range: { from: `${DAY_OF(DAY)}T00:00:00.000Z`, to: `${DAY_OF(0)}T00:00:00.000Z` },
      ...{ complete: true, open: 0, money: [] },
    });
    const range = ["--from", DAY_OF(3 * DAY), "--to", DAY_OF(0)];
    const longer = await world.run("report", ...range);
    expect(longer.exitCode).toBe(0);
    const sum = { count: 1, amount: "1500" };
    expect(longer.json).toMatchObject({
      money: [{ currency: "usd", recorded: sum, charged: sum, net: "1500" }],
      intents: { made: { recorded: 1 } },
    });
    world.pay({ id: "1b", amount: 1_500, secondsAgo: 120, metadata: { intent_id: "L1" } });
    await world.once();
    const open = await world.run("report", ...range);
    expect(open.exitCode).toBe(3);
    expect(open.json).toMatchObject({ open: 1, incidents: { openNow: [{ age: "hour" }] } });
  });

  it("error: a range that is none", async () => {
    const ran = await world.run("report", "--from", "2026-05-04", "--to", "2026-05-04");
    expect(ran.exitCode).toBe(2);
    expect(ran.stdout).toContain("is not before the end");
    expect((await world.run("report", "--from", "2026-02-31")).exitCode).toBe(2);
  });
});

describe("what is not there", () => {
  it("error: explain knows nothing of an id, and says so plainly", async () => {
    await double();
    const ran = await world.run("explain", "ch_x");
    expect(ran.exitCode).toBe(2);
    expect(ran.json).toMatchObject({
      error: { code: "not_known", message: 'nothing is known of "ch_x"' },
    });
    expect(ran.stdout).toContain("near it: ch_1, ch_2");
    expect(ran.stdout).not.toContain("command line");
  });

  it("error: an option that does nothing there is refused, not forgotten", async () => {
    const ran = await world.run("incidents", "ack", "inc_x", "--for", "24h");
    expect(ran.exitCode).toBe(2);
    expect(ran.stdout).toContain(
      "incidents ack: saw --for; allowed: --note, --by. --for is for mute.",
    );
  });

  it("error: an incident that is not there, or cannot be acted on", async () => {
    const shown = await world.run("incidents", "show", "inc_none");
    const acked = await world.run("incidents", "ack", "inc_none");
    for (const { exitCode, json } of [shown, acked]) {
      expect(exitCode).toBe(2);
      expect(json).toMatchObject({
        error: { code: "not_known", message: 'there is no incident "inc_none"' },
      });
    }
    const id = theOpen(await double(), "double_charge").id;
    await world.run("incidents", "close", id);
    const late = await world.run("incidents", "mute", id, "--for", "1h");
    expect(late.exitCode).toBe(2);
    expect(late.json).toMatchObject({ error: { code: "not_possible" } });
  });
});

describe("RESOLVE", () => {
  const stage = async (): Promise<void> => {
    await world.row({ id: "R", state: "reconciling", amount: 1_900, secondsAgo: HOUR });
    world.pay({ id: "R", amount: 1_900, secondsAgo: HOUR - 2, metadata: { intent_id: "R" } });
    const lost = { amount: 41_000, secondsAgo: 5 * DAY };
    await world.row({ id: "F", state: "failed_retryable", ...lost });
    world.pay({ id: "F", ...lost, metadata: { intent_id: "F" } });
    await world.row({ id: "T", state: "failed_terminal", amount: 2_100, secondsAgo: HOUR });
    world.pay({ id: "T", amount: 2_100, secondsAgo: HOUR - 2, metadata: { intent_id: "T" } });
  };
  const outcomes = async (): Promise<string[]> => {
    const found = await world.pool.query<{ line: string }>(
      `select intent || ' ' || decision || ' ' || outcome as line
         from tallyd.resolution_list
        order by 1`,
    );
    return found.rows.map((row) => row.line);
  };

  it("default: write settles what is proven, never a terminal row", async () => {
    await stage();
    const found = await world.once();
    expect(found.rows["R"]?.state).toBe("recorded");
    expect(found.rows["F"]?.state).toBe("recorded");
    expect(found.rows["T"]).toMatchObject({ state: "failed_terminal", charge_id: null });
    expect(found.open).toEqual(["state_drift critical"]);
    expect(theOpen(found, "state_drift").intents).toEqual(["T"]);
    expect(await outcomes()).toEqual(["F recorded applied", "R recorded applied"]);
  });

  it("behavior: suggest writes nothing and says what it would", async () => {
    world.env["RESOLVE"] = "suggest";
    await stage();
    const found = await world.once();
    expect(found.rows).toMatchObject({
      ...{ R: { state: "reconciling" }, F: { state: "failed_retryable" } },
    });
    expect(await outcomes()).toEqual(["F recorded suggested", "R recorded suggested"]);
    const drifting = openOf(found, "state_drift").flatMap((one) => one.intents);
    expect(drifting).toEqual(expect.arrayContaining(["F", "T"]));
    expect(found.exitCode).toBe(3);
  });

  it("behavior: off does neither", async () => {
    world.env["RESOLVE"] = "off";
    await stage();
    const found = await world.once();
    expect(found.rows).toMatchObject({
      ...{ R: { state: "reconciling" }, F: { state: "failed_retryable" } },
    });
    expect(await outcomes()).toEqual([]);
  });
});

describe("audit, backfill, views", () => {
  it("default: an audit finds what was forgotten, once", async () => {
    const found = await double();
    const id = theOpen(found, "double_charge").id;
    for (const table of ["reminder", "outbox", "incident_entry", "incident"]) {
      await world.pool.query(`delete from tallyd.${table}`);
    }
    const audited = await world.run("audit");
    expect(audited.exitCode).toBe(3);
    const after = await world.look(audited);
    expect(theOpen(after, "double_charge").id).toBe(id);
    expect(after.messages).toHaveLength(found.messages.length + 1);
  });

  it("default: a backfill reads what the first pass did not, and judges it", async () => {
    const silent = { events: false } as const;
    for (const [n, days] of [
      [1, 60],
      [2, 59],
    ] as const) {
      world.pay({
        ...{ id: `b${String(n)}`, amount: 6_100, secondsAgo: days * DAY, customer: "cus_b" },
        ...{ metadata: { intent_id: "B" }, more: silent, charge: silent },
      });
    }
    const old = { amount: 6_100, secondsAgo: 60 * DAY };
    await world.row({ id: "B", state: "recorded", charge: "ch_b1", ...old });
    expect(await world.once()).toMatchObject({ exitCode: 0, open: [] });
    const ran = await world.run("backfill", "--since", "90d");
    expect(ran.exitCode).toBe(3);
    expect(ran.json).toMatchObject({ objects: expect.any(Number) as number, failures: [] });
    const found = await world.look(ran);
    expect(found.open).toEqual(["double_charge critical"]);
    world.stripe.control.clearRequests();
    await world.run("backfill", "--since", "90d");
    const reads = world.stripe.control.requests.filter((one) => one.path === "/v1/charges");
    // What is proven to be read is not read twice: only the newest end is new.
    expect(reads.length).toBeLessThanOrEqual(1);
  });

  it("default: the views tell the same as the commands", async () => {
    const found = await double();
    const rows = async (view: string): Promise<Record<string, unknown>[]> => {
      const result = await world.pool.query<Record<string, unknown>>(`table tallyd.${view}`);
      return result.rows;
    };
    expect(await rows("incident_list")).toMatchObject([
      ...[{ id: theOpen(found, "double_charge").id, amount_at_risk: "1500", intents: ["L1"] }],
    ]);
    const charges = await rows("charge_list");
    expect(charges.map((row) => [row["charge_id"], row["intent"]]).sort()).toEqual([
      ...[
        ["ch_1", "L1"],
        ["ch_2", "L1"],
      ],
    ]);
    const sources = new Set((await rows("coverage_list")).map((row) => row["source"]));
    for (const source of ["stripe.events", "stripe.charges", "stripe.payment_intents"]) {
      expect(sources).toContain(source);
    }
    expect(await rows("resolution_list")).toEqual([]);
  });

  it("default: migrate and doctor answer in JSON", async () => {
    expect((await world.run("migrate")).exitCode).toBe(0);
    const doctor = await world.run("doctor");
    expect(doctor.exitCode).toBe(0);
    expect(doctor.stdout).toMatch(/integer/i);
    const report = await world.run("version");
    expect(report.exitCode).toBe(0);
  });
});

describe("a table of the team's own making", () => {
  beforeEach(async () => {
    await world.pool.query("create schema if not exists shop");
    await world.pool.query("drop table if exists shop.payments");
    await world.pool.query(
      `create table shop.payments (order_no text primary key, cents bigint, cur text, idem text,
         status text, stripe_id text, response jsonb, created timestamp, modified timestamp,
         meta jsonb)`,
    );
    world.config({
      intents: {
        table: "shop.payments",
        columns: {
          ...{ intentId: "order_no", accountId: "'shop'", amount: "cents", state: "status" },
          ...{ currency: "lower(cur)", idempotencyKey: "idem", chargeId: "stripe_id" },
          ...{ response: "response", createdAt: "created", updatedAt: "modified" },
          reference: "meta->>'order'",
        },
        states: { PENDING: "in_flight", PAID: "recorded", UNKNOWN: "reconciling" },
        write: { state: "status", chargeId: "stripe_id", response: "response" },
        timeZone: "Europe/Berlin",
      },
      stripe: { referenceKey: "order", owned: { metadata: { app: "shop" } } },
    });
  });

  it("default: it is read, judged and written in the team's own words", async () => {
    await world.pool.query(
      `insert into shop.payments
       select t.id, t.cents, 'USD', 'k-' || t.id, t.status, t.charge, null, at, at,
              jsonb_build_object('order', t.id)
         from (values ('o1', 1000, 'UNKNOWN', null), ('o2', 2000, 'PAID', 'pi_o2')) as t
                (id, cents, status, charge),
              lateral (select (now() - interval '1 hour') at time zone 'Europe/Berlin' as at) as a`,
    );
    const ours = (order: string) => ({ app: "shop", order });
    const pay = (id: string, amount: number, metadata: Readonly<Record<string, string>>) => {
      world.pay({ id, amount, metadata, secondsAgo: HOUR - 5, customer: `cus_${id}` });
    };
    pay("o1", 1_000, { ...ours("o1"), intent_id: "o1" });
    pay("o2", 2_000, ours("o2"));
    pay("o2b", 2_000, ours("o2"));
    pay("foreign", 4_000, { app: "blog" });
    pay("unmarked", 5_000, {});
    const ran = await world.run("once");
    expect(ran.exitCode).toBe(3);
    const found = await world.look(ran);
    expect(found.open).toEqual(["double_charge critical", "orphan_charge info"]);
    expect(theOpen(found, "double_charge")).toMatchObject({
      ...{ intents: ["o2"], amountAtRisk: "2000", basis: "reference" },
    });
    // Not owned is never told; not decidable is information.
    expect(theOpen(found, "orphan_charge").charges).toEqual(["ch_unmarked"]);
    const rows = await world.pool.query<{ status: string; stripe_id: string }>(
      "select status, stripe_id from shop.payments where order_no = 'o1'",
    );
    expect(rows.rows[0]?.status).toBe("PAID");
    expect(rows.rows[0]?.stripe_id).toMatch(/^(pi|ch)_o1$/);
  });
});

describe("the real process", () => {
  it("default: once --json says on stdout alone what the command line says", async () => {
    await double();
    const env = { PATH: process.env["PATH"], HOME: process.env["HOME"], ...world.env };
    const tsx = path.join(ROOT, "node_modules/.bin/tsx");
    const done = await runFile(tsx, ["src/bin.ts", "once", "--json"], { cwd: ROOT, env }).catch(
      (error: unknown) => error as { code: number; stdout: string; stderr: string },
    );
    expect(done).toMatchObject({ code: 3 });
    const inside = await world.run("once");
    const { open, failures } = JSON.parse(done.stdout) as Record<string, unknown>;
    expect(inside.json).toMatchObject({ open, failures });
    expect(open).toBe(1);
  });
});
