import type { Pool } from "pg";

import { hookHealth } from "../alert/hook-health.ts";
import type { HookHealth } from "../alert/hook-health.ts";
import type { ProgramChannel } from "../alert/program-route.ts";
import type { SendOutcome } from "../alert/send-outcome.ts";
import { wayWords } from "../alert/way-words.ts";
import type { Clock } from "../core/clock.ts";
import type { Settings } from "../core/settings.ts";
import { outcomeCheck } from "./check-slack.ts";
import type { Check } from "./check.ts";
import { fine, told } from "./check.ts";

/** Sends one test message to a program; given only when the user asked for it. */
export type SendProgramTest = (channel: ProgramChannel) => Promise<SendOutcome>;

/** The programs that alerts go to, and with `sendTest` whether a message is taken. */
export async function checkPrograms(
  settings: Settings,
  sendTest: SendProgramTest | null,
): Promise<Check[]> {
  const { webhook, pagerDuty } = settings;
  const programs = [
    { channel: "webhook", at: webhook?.url },
    { channel: "pagerduty", at: pagerDuty?.apiBase },
  ] as const;
  const checks: Check[] = [];
  for (const { channel, at } of programs) {
    if (at === undefined) continue;
    const { setting, whenFailing } = wayWords(channel);
    checks.push(fine(setting, `alerts go to ${new URL(at).host}`));
    if (sendTest === null) continue;
    checks.push(outcomeCheck(setting, await sendTest(channel), whenFailing));
  }
  return checks;
}

/** What is stored about each way out that was used: is one gone, and what waits for it? */
export async function checkWays(deps: {
  readonly own: Pool | Error;
  readonly clock: Clock;
}): Promise<Check[]> {
  if (deps.own instanceof Error || !(await hasSchema(deps.own))) return [];
  const hooks = await hookHealth(deps.own, deps.clock.now());
  return hooks.filter(({ channel }) => channel !== "log").map(wayCheck);
}

function wayCheck(hook: HookHealth): Check {
  const { name, setting, whenDead, whenFailing } = wayWords(hook.channel);
  const title = `alerts: ${hook.channel}`;
  const waits = hook.waiting + hook.uncertain;
  if (hook.since === null) {
    return fine(title, `the ${name} of ${setting} takes alerts; ${String(waits)} wait`);
  }
  const dead = hook.state === "dead";
  const what = dead ? "is gone" : "takes no alerts";
  const since = hook.since.toISOString();
  const check = told(title, dead ? "fault" : "warning", {
    seen: `the ${name} of ${setting} ${what} since ${since} (${hook.error ?? "no answer"})`,
    meaning: `nobody hears alerts there; ${String(waits)} wait`,
    advice: dead ? whenDead : whenFailing,
  });
  // As with `once`: whether alerts arrive is not known, so exit code 4.
  return { ...check, unreadable: dead };
}

/** A first start has not made the tables yet. */
async function hasSchema(pool: Pool): Promise<boolean> {
  const found = await pool.query<{ there: boolean }>(
    "select to_regclass('tallyd.hook') is not null as there",
  );
  return found.rows[0]?.there === true;
}
