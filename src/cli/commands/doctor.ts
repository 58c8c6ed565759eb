import type { Pool } from "pg";

import { createPagerDutySend } from "../../alert/pagerduty.ts";
import { createSlackSend } from "../../alert/slack.ts";
import { createWebhookSend } from "../../alert/webhook.ts";
import type { Clock } from "../../core/clock.ts";
import type { Settings } from "../../core/settings.ts";
import { endPool, openDatabase } from "../../daemon/open-database.ts";
import type { Database } from "../../daemon/open-database.ts";
import { sharesSessions } from "../../daemon/pooler.ts";
import { doctorExitCode } from "../../doctor/check.ts";
import type { SendProgramTest } from "../../doctor/check-programs.ts";
import { formatDoctor } from "../../doctor/format-doctor.ts";
import { runDoctor } from "../../doctor/run-doctor.ts";
import { openStripe } from "../../sources/stripe/client.ts";
import type { StripeReader } from "../../sources/stripe/client.ts";
import { openPool } from "../../store/pool.ts";
import type { Command, CommandContext } from "../command.ts";

const TEST_TEXT = "This is a test of tallyd (tallyd doctor --send-test): alerts arrive here.";
const CONNECTIONS_MAX = 2;

/** `tallyd doctor` */
export const doctor: Command = {
  name: "doctor",
  summary: "check database, rights, table, Stripe key, webhook secret, Slack and clocks",
  usage: ["[--send-test]"],
  details: [
    "Reads and changes nothing. Exit code 0 when nothing is in the way (warnings name weaker",
    "proofs), 2 for a fault of the set-up, 4 for something that could not be read.",
  ],
  options: { "send-test": { type: "boolean", help: "send a test message on each way out" } },
  argsMax: 0,
  run: async (context) => {
    const settings = await context.settings();
    const own = await openOwn(settings, context);
    const url = settings.intents.databaseUrl ?? (own instanceof Error ? null : own.url);
    const sameDatabase = settings.intents.databaseUrl === null;
    const team =
      sameDatabase || url === null
        ? null
        : openPool({ url, applicationName: "tallyd-doctor", max: CONNECTIONS_MAX });
    try {
      const ownPool: Pool | Error = own instanceof Error ? own : own.pool;
      const checks = await runDoctor({
        settings,
        clock: context.clock,
        own: ownPool,
        team: team ?? ownPool,
        sharesSessions,
        stripe: probeOf(settings, context),
        sendTest:
          context.flags["send-test"] === true
            ? (_hook, hookUrl) => createSlackSend(hookUrl)({ text: TEST_TEXT })
            : null,
        sendProgramTest:
          context.flags["send-test"] === true ? programTest(settings, context.clock) : null,
      });
      return {
        exitCode: doctorExitCode(checks),
        json: { checks },
        text: formatDoctor(checks),
      };
    } finally {
      if (team !== null) await endPool(team);
      if (!(own instanceof Error)) await own.close();
    }
  },
};

/** PagerDuty gets the end of an alert that never was: that proves the key and wakes nobody. */
function programTest(settings: Settings, clock: Clock): SendProgramTest {
  const { webhook, pagerDuty } = settings;
  const about = { messageId: 0n, createdAt: clock.now() };
  return async (channel) => {
    if (channel === "webhook" && webhook !== null) {
      const timestamp = about.createdAt.toISOString();
      const event = { type: "test", timestamp, data: { text: TEST_TEXT } };
      return createWebhookSend(webhook, clock)({ ...about, event });
    }
    if (channel === "pagerduty" && pagerDuty !== null) {
      const event = { event_action: "resolve", dedup_key: "tallyd-doctor-test" };
      return createPagerDutySend(pagerDuty)({ ...about, event });
    }
    return { kind: "unreachable", reason: "it is not set" };
  };
}

/** A database out of reach is a finding of the doctor, not the end of it. */
async function openOwn(settings: Settings, context: CommandContext): Promise<Database | Error> {
  try {
    return await openDatabase(settings, context.log);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function probeOf(settings: Settings, { clock }: CommandContext): StripeReader | null {
  const { apiKey } = settings.stripe;
  return apiKey === null ? null : openStripe({ ...settings.stripe, apiKey }, { clock });
}
