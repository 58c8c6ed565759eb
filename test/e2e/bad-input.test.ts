/**
 * Goal: what is wrong with settings, databases, rights, keys and rows is named, with the right exit
 * code, as JSON on stdout alone, and never stops the rest. Method: command lines and what they say.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { about, API_KEY, openE2e, theOpen } from "./world.ts";
import type { E2e, Ran } from "./world.ts";

const NOWHERE = "postgres://someone:hunter2secret@127.0.0.1:1/nowhere";

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

/** The words of a failure: its code, its message, its faults. */
function failure(ran: Ran): { code: string; text: string } {
  const { error } = ran.json as { error: { code: string; message: string; faults: string[] } };
  return { code: error.code, text: [error.message, ...error.faults].join("\n") };
}

describe("settings", () => {
  it("error: every fault at once, with the name, what was seen, what is allowed", async () => {
    Object.assign(world.env, {
      ...{ RESOLVE: "maybe", IN_FLIGHT_LIMIT: "soon", PORT: "70000", TIME_ZONE: "Mars/Base" },
      ...{ STRIPE_SUBSCRIPTIONS: "some", LOG_LEVEL: "loud", STRIPE_READS_PER_SECOND: "-1" },
    });
    const ran = await world.run("once");
    expect(ran.exitCode).toBe(2);
    const { text } = failure(ran);
    for (const name of ["RESOLVE", "IN_FLIGHT_LIMIT", "PORT", "TIME_ZONE", "LOG_LEVEL"]) {
      expect(text).toContain(name);
    }
    expect(text).toContain("STRIPE_SUBSCRIPTIONS");
    expect(text).toContain("STRIPE_READS_PER_SECOND");
    expect(text).toMatch(/maybe[\s\S]*write, suggest/);
  });

  it("error: secrets are not printed, whatever is wrong with them", async () => {
    const secrets = { STRIPE_API_KEY: "hunter2secret", STRIPE_WEBHOOK_SECRET: "hunter2secret" };
    Object.assign(world.env, secrets, { SLACK_WEBHOOK_URL: "no-url-hunter2secret" });
    const ran = await world.run("once");
    expect(ran.exitCode).toBe(2);
    expect(failure(ran).text).toContain("STRIPE_API_KEY");
    expect(ran.stdout + ran.stderr).not.toContain("hunter2secret");
  });

  it("error: a config file that is absent, broken or unknown in parts is named", async () => {
    world.env["TALLYD_CONFIG"] = "/nowhere/tallyd.json";
    const absent = await world.run("once");
    expect(absent.exitCode).toBe(2);
    expect(failure(absent).text).toContain("/nowhere/tallyd.json");
    world.config({ rules: { inFlightLimt: "10m" }, intents: { columns: { ammount: "a" } } });
    const unknown = await world.run("once");
    expect(unknown.exitCode).toBe(2);
    expect(failure(unknown).text).toMatch(/inFlightLimt[\s\S]*inFlightLimit/);
    expect(failure(unknown).text).toContain("ammount");
    world.config("no object");
    expect((await world.run("once")).exitCode).toBe(2);
  });

  it.each([
    [["onec"], /once/],
    [["once", "--fast"], /--fast/],
    [["incidents", "liszt"], /list/],
    [["incidents", "show"], /id/],
    [["incidents", "show", "inc_000000000000"], /inc_000000000000/],
    [["incidents", "mute", "inc_1", "--for", "soon"], /--for/],
    [["backfill"], /--since/],
    [["backfill", "--since", "yesterdayish"], /--since/],
    [["explain"], /ID/],
    [["explain", "nothing-of-that-name"], /nothing-of-that-name/],
  ] as const)("error: the command line %j is told, as 2", async (argv, words) => {
    const ran = await world.run(...argv);
    expect(ran.exitCode).toBe(2);
    expect(failure(ran).text).toMatch(words);
  });
});

describe("databases", () => {
  it.each(["once", "incidents", "migrate", "audit"])(
    "error: tallyd's own database out of reach is 4 (%s)",
    async (command) => {
      world.env["DATABASE_URL"] = NOWHERE;
      const ran = await world.run(command);
      expect(ran.exitCode).toBe(4);
      expect(failure(ran).text).toMatch(/database/);
      expect(ran.stdout + ran.stderr).not.toContain("hunter2secret");
    },
  );

  it("error: the team's database out of reach is 4, and Stripe is still read", async () => {
    world.env["INTENTS_DATABASE_URL"] = NOWHERE;
    world.env["INTENTS_TABLE"] = "public.payment_intents";
    world.pay({ id: "1" });
    const found = await world.once();
    expect(found.exitCode).toBe(4);
    expect(found.stdout).toMatch(/local/);
    // Nothing is an orphan while nobody can look for its row.
    expect(about(found, "1")).toEqual([]);
    const charges = await world.pool.query("select from tallyd.charge_list");
    expect(charges.rowCount).toBe(1);
    expect(found.stdout + found.stderr).not.toContain("hunter2secret");
  });

  it("error: a table that is not there is named", async () => {
    world.env["INTENTS_TABLE"] = "public.no_such_table";
    const ran = await world.run("once");
    expect(ran.exitCode).toBe(2);
    expect(failure(ran).text).toContain("no_such_table");
    const made = await world.pool.query("select to_regclass('public.no_such_table') as found");
    expect(made.rows).toEqual([{ found: null }]);
  });

  it("error: a mapped expression that does not hold is named", async () => {
    world.config({
      intents: { table: "payment_intents", columns: { reference: "no_such_column" } },
    });
    const ran = await world.run("once");
    expect(ran.exitCode).toBe(2);
    expect(failure(ran).text).toMatch(/reference|no_such_column/);
  });

  const asReader = async (rights: string): Promise<void> => {
    await world.pool.query("drop owned by e2e_reader").catch(() => undefined);
    await world.pool.query("drop role if exists e2e_reader");
    await world.pool.query("create role e2e_reader login password 'opensesame'");
    if (rights !== "") await world.pool.query(`grant ${rights} on payment_intents to e2e_reader`);
    const url = new URL(world.url);
    url.username = "e2e_reader";
    url.password = "opensesame";
    world.env["INTENTS_DATABASE_URL"] = url.href;
    world.env["INTENTS_TABLE"] = "public.payment_intents";
  };
  const dropReader = async (): Promise<void> => {
    await world.pool.query("drop owned by e2e_reader");
    await world.pool.query("drop role e2e_reader");
  };

  it("error: a table that may not be read is named, and health is unknown", async () => {
    await asReader("");
    try {
      const ran = await world.run("once");
      expect([2, 4]).toContain(ran.exitCode);
      expect(failure(ran).text).toMatch(
        /public\.payment_intents is there.*e2e_reader may not read.*intent_id.*grant select on/,
      );
    } finally {
      await dropReader();
    }
  });

  it("error: a row that may not be written stays, and somebody is told", async () => {
    await asReader("select");
    try {
      await world.row({ id: "L1", state: "reconciling", secondsAgo: 1_200 });
      world.pay({ id: "1", secondsAgo: 1_190, metadata: { intent_id: "L1" } });
      const found = await world.once();
      expect(found.exitCode).not.toBe(1);
      expect(found.exitCode).not.toBe(0);
      expect(found.rows["L1"]?.state).toBe("reconciling");
      expect(found.open).toEqual(["config_error warning", "state_drift critical"]);
      const rights = theOpen(found, "config_error");
      expect(rights.summary).toMatch(/e2e_reader has no UPDATE right on .*state.*payment_intents/);
      const told = await world.pool.query<{ outcome: string }>(
        "select outcome from tallyd.resolution_list where intent = 'L1'",
      );
      expect(told.rows).toEqual([{ outcome: "refused" }]);
      const grant = /"(grant update [^"]+)"/.exec(rights.advice)?.[1] ?? "";
      await world.pool.query(grant);
      const granted = await world.once();
      expect(granted.rows["L1"]?.state).toBe("recorded");
      expect(granted.open).toEqual([]);
    } finally {
      await dropReader();
    }
  });
});

describe("Stripe", () => {
  it("error: Stripe out of reach is told by doctor, as 4", async () => {
    world.env["STRIPE_API_BASE"] = "http://127.0.0.1:1";
    const ran = await world.run("doctor");
    expect(ran.exitCode).toBe(4);
    expect(ran.stdout).toMatch(/127\.0\.0\.1:1|reach/);
    expect(ran.stdout + ran.stderr).not.toContain(API_KEY);
  });

  it("error: an answer that is no JSON is 4", async () => {
    const page = { kind: "respond", status: 200, body: "<html>proxy</html>" } as const;
    world.stripe.control.fault({ ...page, path: "/v1/charges", count: Infinity });
    const found = await world.once();
    expect(found.exitCode).toBe(4);
    expect(found.stdout).toMatch(/stripe\.charges/);
  });

  it("error: a live key where test objects are wanted is a fault of the settings", async () => {
    world.env["STRIPE_API_KEY"] = "rk_live_0123456789abcdef";
    world.env["STRIPE_LIVEMODE"] = "false";
    const ran = await world.run("once");
    expect(ran.exitCode).toBe(2);
    expect(failure(ran).text).toMatch(/STRIPE_LIVEMODE|STRIPE_API_KEY/);
  });
});

describe("rows and objects that should not exist", () => {
  it("behavior: nothing of them stops the pass, and the healthy rest is judged", async () => {
    await world.fresh("loose");
    const huge = 10n ** 77n;
    await world.row({ id: "huge", state: "recorded", amount: huge, charge: "ch_huge" });
    await world.row({ id: "negative", state: "recorded", amount: -5, charge: "ch_neg" });
    await world.row({ id: "zero", state: "in_flight", amount: 0, secondsAgo: 5_000 });
    await world.row({ id: "a-state", state: "banana" });
    await world.row({ id: "currency", state: "recorded", currency: "zzz", charge: "ch_cur" });
    await world.row({ id: "a-twice", state: "recorded", key: "t1", charge: "ch_t1" });
    await world.row({ id: "a-twice", state: "reconciling", key: "t2" });
    await world.row({ id: "long", state: "recorded", key: "k".repeat(5_000), charge: "ch_long" });
    await world.row({ id: "x".repeat(5_000), state: "recorded" });
    await world.row({ id: "", state: "recorded" });
    await world.row({ id: "odd'\";--\t☃", state: "recorded", charge: "ch_odd" });
    await world.pool.query("insert into payment_intents (state) values ('recorded')");
    await world.pool.query(
      `insert into payment_intents (intent_id, account_id, amount, currency, idempotency_key, state)
       values ('nan', 'A', 'NaN', 'usd', 'k-nan', 'recorded'),
              ('half', 'A', 10.5, 'usd', 'k-half', 'recorded')`,
    );
    const nul = { intent_id: "a\u0000b", reference: "r\u0000", note: "\ud800" };
    world.pay({ id: "nul", amount: 1_111, customer: "cus_nul", metadata: nul });
    world.pay({ id: "odd", customer: "cus_odd", metadata: { intent_id: "odd'\";--\t☃" } });
    const marked = { amount: 3_000, customer: "cus_D", metadata: { intent_id: "D-L1" } };
    await world.row({ id: "D-L1", state: "recorded", amount: 3_000, charge: "ch_D-1" });
    world.pay({ id: "D-1", ...marked });
    world.pay({ id: "D-2", ...marked, secondsAgo: 800 });
    const found = await world.once();
    expect([3, 4]).toContain(found.exitCode);
    expect(about(found, "D-")).toEqual(["double_charge critical"]);
    const told = JSON.stringify(found.incidents);
    for (const name of ["banana", "a-twice", "10.5", "8 rows"]) expect(told).toContain(name);
    const charges = await world.pool.query(
      "select from tallyd.charge_list where charge_id = 'ch_nul'",
    );
    expect(charges.rowCount).toBe(1);
    const again = await world.once();
    expect(again.open).toEqual(found.open);
    expect(again.messages).toEqual(found.messages);
  });
});
