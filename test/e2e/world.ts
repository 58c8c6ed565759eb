/**
 * The outside of tallyd for black-box tests: a team's database, stand-ins for Stripe and Slack, and
 * the command line with nothing but settings. What is looked at is what a user sees: exit codes,
 * JSON on stdout, the team's rows, Slack.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";

import type { Pool } from "pg";
import { vi } from "vitest";

import { COMMANDS } from "../../src/cli/commands.ts";
import { main } from "../../src/cli/main.ts";
import { systemClock } from "../../src/core/clock.ts";
import type { IncidentJson } from "../../src/incident/present.ts";
import { startSlackSandbox } from "../../src/sandbox/slack/server.ts";
import type { SlackSandbox } from "../../src/sandbox/slack/server.ts";
import type { SeedPaymentIntent } from "../../src/sandbox/stripe/seed-payment.ts";
import type { SeedCharge } from "../../src/sandbox/stripe/seed-payment.ts";
import { startStripeSandbox } from "../../src/sandbox/stripe/server.ts";
import type { StripeSandbox } from "../../src/sandbox/stripe/server.ts";
import { createTestDb, dataTables, emptyTables } from "../support/db.ts";
import { insertRow, makeTable, readRows } from "./team-table.ts";
import type { RowInput, TableKind, TeamRow } from "./team-table.ts";

export const API_KEY = "rk_test_0123456789abcdef";
export const WEBHOOK_SECRET = "whsec_0123456789abcdef";

/** What a command line did. */
export interface Ran {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Parsed stdout; every run here asks for `--json`. */
  readonly json: unknown;
}

/** What a pass left behind. */
export interface Outcome extends Ran {
  /** `incidents list --all --json`. */
  readonly incidents: readonly IncidentJson[];
  /** Not closed, as `code severity`, sorted. */
  readonly open: readonly string[];
  /** The team's rows by id. */
  readonly rows: Readonly<Record<string, TeamRow>>;
  /** Everything Slack got so far. */
  readonly messages: readonly string[];
}

export interface PayInput {
  /** The payment intent is `pi_` and the charge `ch_` followed by this. */
  readonly id: string;
  readonly amount?: number | bigint;
  readonly currency?: string;
  readonly secondsAgo?: number;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly key?: string;
  readonly customer?: string;
  readonly more?: SeedPaymentIntent;
  readonly charge?: SeedCharge | false;
}

/** Environment settings of one run on top of the usual ones; undefined takes one away. */
export type Env = Readonly<Record<string, string | undefined>>;

export interface E2e {
  readonly pool: Pool;
  readonly url: string;
  readonly stripe: StripeSandbox;
  readonly slack: SlackSandbox;
  /** Settings that {@link run} uses. */
  readonly env: Record<string, string | undefined>;
  /** Empties everything, starts new stand-ins, makes the team's table. */
  readonly fresh: (table?: TableKind, env?: Env) => Promise<void>;
  readonly row: (input: RowInput) => Promise<void>;
  readonly rows: () => Promise<Record<string, TeamRow>>;
  /** A paid payment at the stand-in. */
  readonly pay: (input: PayInput) => void;
  /** Unix seconds `ago` before now at Stripe. */
  readonly at: (secondsAgo: number) => number;
  /** Writes a config file and points TALLYD_CONFIG to it. */
  readonly config: (content: unknown) => void;
  /** Runs a command line with `--json` added. */
  readonly run: (...argv: readonly string[]) => Promise<Ran>;
  readonly once: () => Promise<Outcome>;
  /** The same look without a pass; `ran` is kept. */
  readonly look: (ran: Ran) => Promise<Outcome>;
  readonly close: () => Promise<void>;
}

const MS = 1_000;

/** One world per test file; call `fresh` before each test. */
export async function openE2e(): Promise<E2e> {
  const db = await createTestDb();
  const folder = mkdtempSync(path.join(os.tmpdir(), "tallyd-e2e-"));
  const own = await dataTables(db.pool);
  let stripe: StripeSandbox | undefined;
  let slack: SlackSandbox | undefined;
  let table: TableKind = "seed";
  const env: Record<string, string | undefined> = {};
  const stripeNow = (): StripeSandbox => started(stripe);
  const slackNow = (): SlackSandbox => started(slack);
  const stop = async (): Promise<void> => {
    await Promise.all([stripe?.close(), slack?.close()]);
  };
  const fresh = async (kind: TableKind = "seed", extra: Env = {}): Promise<void> => {
    await stop();
    await emptyTables(db.pool, own);
    table = kind;
    await makeTable(db.pool, kind);
    stripe = await startStripeSandbox();
    slack = await startSlackSandbox();
    for (const name of Object.keys(env)) Reflect.deleteProperty(env, name);
    Object.assign(env, {
      ...{ DATABASE_URL: db.url, STRIPE_API_KEY: API_KEY, STRIPE_API_BASE: stripe.url },
      ...{ STRIPE_READS_PER_SECOND: "0", SLACK_WEBHOOK_URL: slack.webhookUrl },
      ...{ PORT: "0", ADMIN_PORT: "0", HOST: "127.0.0.1", ...extra },
    });
  };
  const rows = (): Promise<Record<string, TeamRow>> => readRows(db.pool, table);
  const run = (...argv: readonly string[]): Promise<Ran> => runCommand(env, argv);
  const look = async (ran: Ran): Promise<Outcome> => {
    const incidents = (await run("incidents", "list", "--all")).json as readonly IncidentJson[];
    const open = incidents
      .filter((one) => one.status !== "closed")
      .map((one) => `${one.code} ${one.severity}`)
      .sort();
    const messages = slackNow().control.messages.map((one) => one.text ?? "");
    return { ...ran, incidents, open, rows: await rows(), messages };
  };
  return {
    pool: db.pool,
    url: db.url,
    get stripe() {
      return stripeNow();
    },
    get slack() {
      return slackNow();
    },
    env,
    fresh,
    row: (input) => insertRow(db.pool, table, input),
    rows,
    pay: (input) => {
      pay(stripeNow(), input);
    },
    at: (secondsAgo) => secondsAt(stripeNow(), secondsAgo),
    config: (content) => {
      const file = path.join(folder, "tallyd.json");
      writeFileSync(file, JSON.stringify(content));
      env["TALLYD_CONFIG"] = file;
    },
    run,
    once: async () => look(await run("once")),
    look,
    close: async () => {
      await stop();
      await db.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The incidents of a code that are not closed. */
export function openOf(outcome: Pick<Outcome, "incidents">, code: string): IncidentJson[] {
  return outcome.incidents.filter((one) => one.code === code && one.status !== "closed");
}

/** The one incident of a code that is not closed; throws when there are more or none. */
export function theOpen(outcome: Pick<Outcome, "incidents" | "open">, code: string): IncidentJson {
  const [first, ...rest] = openOf(outcome, code);
  if (first === undefined || rest.length > 0) {
    throw new Error(`expected one open ${code}, saw ${JSON.stringify(outcome.open)}`);
  }
  return first;
}

function started<T>(sandbox: T | undefined): T {
  if (sandbox === undefined) throw new Error("call fresh() first");
  return sandbox;
}

function secondsAt(stripe: StripeSandbox, secondsAgo: number): number {
  return Math.floor(stripe.control.now() / MS) - secondsAgo;
}

function pay(stripe: StripeSandbox, input: PayInput): void {
  const { id, amount = 2_000, currency = "usd", secondsAgo = 900, metadata = {} } = input;
  const created = secondsAt(stripe, secondsAgo);
  stripe.control.seed.paymentIntent({
    id: `pi_${id}`,
    amount: BigInt(amount),
    currency,
    created,
    metadata,
    ...(input.key === undefined ? {} : { idempotencyKey: input.key }),
    ...(input.customer === undefined ? {} : { customer: input.customer }),
    charge: input.charge === false ? false : { id: `ch_${id}`, created, ...input.charge },
    ...input.more,
  });
}

async function runCommand(env: Env, argv: readonly string[]): Promise<Ran> {
  const out = { stdout: "", stderr: "" };
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  try {
    const exitCode = await main([...argv, "--json"], {
      commands: COMMANDS,
      output: {
        stdout: (text) => {
          out.stdout += text;
        },
        stderr: (text) => {
          out.stderr += text;
        },
        terminal: false,
      },
      clock: systemClock,
      signal: new AbortController().signal,
    });
    return { exitCode, ...out, json: parseAlone(out.stdout) };
  } finally {
    vi.unstubAllEnvs();
  }
}

/** JSON goes to stdout alone: anything else there is a fault of every command. */
function parseAlone(stdout: string): unknown {
  try {
    return JSON.parse(stdout) as unknown;
  } catch {
    throw new Error(`stdout is no JSON: ${stdout}`);
  }
}

/** What is open about the rows and charges of one case, whose ids all begin with `prefix`. */
export function about(outcome: Pick<Outcome, "incidents">, prefix: string): Outcome["open"] {
  return openAbout(outcome, prefix)
    .map((one) => `${one.code} ${one.severity}`)
    .sort();
}

/** The incidents behind {@link about}. */
export function openAbout(outcome: Pick<Outcome, "incidents">, prefix: string): IncidentJson[] {
  return outcome.incidents.filter(
    (one) =>
      one.status !== "closed" &&
      [...one.intents, ...one.charges].some((id) => id.replace(/^(pi|ch)_/, "").startsWith(prefix)),
  );
}

/** The one open incident of a code in a case; throws when there are more or none. */
export function theOpenAbout(
  outcome: Pick<Outcome, "incidents">,
  code: string,
  prefix: string,
): IncidentJson {
  const incidents = openAbout(outcome, prefix);
  return theOpen({ incidents, open: about(outcome, prefix) }, code);
}
