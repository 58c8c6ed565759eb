import type { Pool } from "pg";

import type { Clock } from "../core/clock.ts";
import type { Settings } from "../core/settings.ts";
import { checkBudget } from "./check-budget.ts";
import { checkChains } from "./check-chains.ts";
import { checkClocks } from "./check-clocks.ts";
import { checkEmbedded, checkOwnSchema, checkServer, checkSessions } from "./check-database.ts";
import type { Opened } from "./check-database.ts";
import { checkPrograms, checkWays } from "./check-programs.ts";
import type { SendProgramTest } from "./check-programs.ts";
import { checkSlack } from "./check-slack.ts";
import type { SendTest } from "./check-slack.ts";
import { checkStripe, checkWebhookSecret } from "./check-stripe.ts";
import type { StripeProbe } from "./check-stripe.ts";
import { checkRows, checkTable } from "./check-table.ts";
import type { Check } from "./check.ts";
import { fine, told, unreadable } from "./check.ts";

/** What `doctor` looks at. It reads and changes nothing. */
export interface DoctorDeps {
  readonly settings: Settings;
  readonly clock: Clock;
  /** tallyd's own database, or why it could not be opened. */
  readonly own: Opened;
  /** The team's database; the same pool where it is the same database. */
  readonly team: Opened;
  /** Does a pooler in transaction mode stand in between? */
  readonly sharesSessions: (pool: Pool) => Promise<boolean>;
  /** `null`: no key is set. */
  readonly stripe: StripeProbe | null;
  /** `null`: no message is sent. */
  readonly sendTest: SendTest | null;
  /** The same for programs. Left out: none is sent. */
  readonly sendProgramTest?: SendProgramTest | null;
}

/** Looks at everything that tallyd depends on. Never throws for what it finds. */
export async function runDoctor(deps: DoctorDeps): Promise<Check[]> {
  const { settings, own, team } = deps;
  const stripe = await checkStripe(settings, deps.stripe);
  return [
    ...settingsChecks(settings),
    ...(await guarded("database", () => databaseChecks(deps))),
    ...(await guarded("intents table", () => teamChecks(deps))),
    ...stripe,
    checkWebhookSecret(settings),
    ...(await guarded("Slack", () => checkSlack(settings, deps.sendTest))),
    ...(await guarded("programs", () => checkPrograms(settings, deps.sendProgramTest ?? null))),
    ...(await guarded("alerts", () => checkWays({ own, clock: deps.clock }))),
    ...(await guarded("chains", () => {
      const { chains } = settings;
      return checkChains({ chains, own, clock: deps.clock });
    })),
    await checkClocks({
      clock: deps.clock,
      databases: [
        ...(own instanceof Error ? [] : [{ name: "tallyd's database", pool: own }]),
        ...(team instanceof Error || team === own
          ? []
          : [{ name: "the team's database", pool: team }]),
      ],
      stripeAheadMs: deps.stripe?.clockAheadMs() ?? null,
      slackMs: settings.rules.clockSlackMs,
    }),
    ...(await guarded("read budget", async () => [
      await checkBudget(settings, { own: own instanceof Error ? null : own, clock: deps.clock }),
    ])),
  ];
}

function settingsChecks(settings: Settings): Check[] {
  const from = settings.configFile === null ? "the environment" : settings.configFile;
  return [
    fine("settings", `read from ${from}`),
    ...settings.warnings.map((warning) =>
      told("settings", "remark", { seen: warning, meaning: "", advice: "" }),
    ),
  ];
}

async function databaseChecks({ settings, own, sharesSessions }: DoctorDeps): Promise<Check[]> {
  const server = await checkServer("database", own);
  const embedded = checkEmbedded(settings);
  const first = embedded === null ? [server] : [server, embedded];
  if (own instanceof Error || server.status === "fault") return first;
  return [...first, await checkOwnSchema(own), await checkSessions(own, sharesSessions)];
}

async function teamChecks({ settings, own, team }: DoctorDeps): Promise<Check[]> {
  const checks: Check[] = [];
  if (team !== own) checks.push(await checkServer("team's database", team));
  // Unreachable is said once; its table is then unknown anyway.
  if (team instanceof Error || checks.some((check) => check.unreadable)) return checks;
  checks.push(...(await checkTable(team, settings)));
  const rows = own instanceof Error ? null : await checkRows(own);
  return rows === null ? checks : [...checks, rows];
}

async function guarded(name: string, check: () => Promise<Check[]>): Promise<Check[]> {
  try {
    return await check();
  } catch (error) {
    return [unreadable(name, error, "see the message, then run doctor again")];
  }
}
