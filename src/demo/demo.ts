/** `tallyd demo`: an agent fleet makes mistakes, the real daemon finds them, a table compares. */
import { setTimeout as sleep } from "node:timers/promises";

import type { Clock } from "../core/clock.ts";
import { listIncidents } from "../incident/present.ts";
import type { IncidentJson } from "../incident/present.ts";
import { agentStripe } from "./agent.ts";
import { playFleet, seededRandom } from "./fleet.ts";
import type { Played } from "./fleet.ts";
import { createNarrator } from "./narrator.ts";
import type { Narrator, Settled } from "./narrator.ts";
import type { ChainDeps } from "./chain-agent.ts";
import type { Expected, Scenario, SceneDeps } from "./scenario.ts";
import { CHAIN_SCENARIOS, playReorganisation } from "./scenarios-chain.ts";
import { DOUBLE_SCENARIOS } from "./scenarios-double.ts";
import { HONEST_SCENARIOS } from "./scenarios-honest.ts";
import { LEDGER_SCENARIOS } from "./scenarios-ledger.ts";
import { SINGLE_SCENARIOS } from "./scenarios-single.ts";
import { isFound, renderScore, score } from "./scoreboard.ts";
import type { ScoreRow } from "./scoreboard.ts";
import { AGENT_KEY, openStage } from "./stage.ts";
import type { Stage } from "./stage.ts";

export interface DemoReport {
  readonly payments: number;
  readonly rows: readonly ScoreRow[];
  readonly resolutions: { readonly injected: number; readonly settled: number };
  readonly slackMessages: number;
  /** Nothing missed, nothing invented, everything settled. */
  readonly ok: boolean;
}

export interface DemoInput {
  readonly dataDir: string;
  readonly inherited: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly write: (line: string) => void;
  readonly signal: AbortSignal;
  /** Called with the stage still open when the report is there; `--keep` waits here. */
  readonly onReport: (report: DemoReport, stage: Stage) => Promise<void>;
}

const POLL_MS = 300;
// The longest wait of the story is the resolver's ladder for a call that never arrived (20 s).
const FOUND_WAIT_MAX_MS = 75_000;
// What would be invented shows up within the longest grace period after the last payment.
const QUIET_WAIT_MS = 5_000;
const CUSTOMERS = 40;

/** Plays the demo from an empty stage to the closing table. */
export async function playDemo(input: DemoInput): Promise<DemoReport> {
  const narrator = createNarrator(input.write, () => input.clock.now().getTime());
  const { tell } = narrator;
  const stage = await openStage({ ...input, tell });
  const watch = watchStory(stage, narrator, input.clock);
  try {
    const deps = await sceneDeps(stage);
    const chain = stage.chain === null ? null : { pool: stage.pool, stage: stage.chain };
    const naive = [...DOUBLE_SCENARIOS, ...SINGLE_SCENARIOS, ...HONEST_SCENARIOS];
    const cards = [...naive, ...LEDGER_SCENARIOS];
    const scenarios = [...cards, ...(chain === null ? [] : onChain(chain))];
    tell("six agents start paying: some by a payment ledger, some retry as they should not");
    let payments = 0;
    const played = await playFleet(deps, scenarios, () => (payments += 1));
    tell(`the fleet has made ${String(payments)} purchases`);
    if (chain !== null) {
      await untilFound(input, stage, { ...played, followUps: [] }, narrator);
      tell("a block of the chain is replaced, with a payment in it that a row has recorded");
      played.expected.push(...(await playReorganisation(deps, chain)));
    }
    const expected = await untilFound(input, stage, played, narrator);
    await sleep(QUIET_WAIT_MS, undefined, { signal: input.signal });
    await watch.end();
    const report = await closeBooks(input, stage, { payments, played, expected });
    await input.onReport(report, stage);
    return report;
  } finally {
    await watch.end();
    await stage.close();
  }
}

function onChain(chain: ChainDeps): Scenario[] {
  return CHAIN_SCENARIOS.map(({ title, times, run }) => ({
    ...{ title, times },
    run: (deps) => run(deps, chain),
  }));
}

async function sceneDeps(stage: Stage): Promise<SceneDeps> {
  const random = seededRandom(20_260_601);
  const stripe = agentStripe(stage.sandbox.url, AGENT_KEY);
  const customers = await Promise.all(
    Array.from({ length: CUSTOMERS }, async () => (await stripe.customers.create({})).id),
  );
  const agent = { pool: stage.pool, stripe, random };
  let serial = 0;
  return {
    ...agent,
    lossy: { ...agent, stripe: agentStripe(stage.lossyUrl, AGENT_KEY) },
    sandbox: stage.sandbox,
    purchase: (name) => {
      serial += 1;
      const number = String(serial).padStart(4, "0");
      return {
        intentId: `pay-${number}-${name}`,
        account: "shop",
        amount: 500 + Math.floor(random() * 9_500),
        currency: random() < 0.5 ? "usd" : "eur",
        key: `pay-${number}-${Math.floor(random() * 2 ** 48)
          .toString(16)
          .padStart(12, "0")}`,
        customer: customers[Math.floor(random() * CUSTOMERS)] ?? "",
        reference: `order-${number}`,
      };
    },
    mirrored: (intentId) => untilMirrored(stage, intentId),
  };
}

// The daemon reads changed rows every second here; a busy machine may be far slower.
const MIRROR_WAIT_MAX_MS = 60_000;

async function untilMirrored(stage: Stage, intentId: string): Promise<void> {
  for (let waited = 0; waited < MIRROR_WAIT_MAX_MS; waited += POLL_MS) {
    const found = await stage.pool.query(
      "select from tallyd.intent where intent_id = $1 and state = 'recorded'",
      [intentId],
    );
    if (found.rowCount === 1) return;
    await sleep(POLL_MS);
  }
  throw new Error(`the daemon did not read ${intentId} within ${String(MIRROR_WAIT_MAX_MS)} ms`);
}

/** Polls incidents and resolutions and tells what is new, until it is ended. */
function watchStory(
  stage: Stage,
  narrator: Narrator,
  clock: Clock,
): { readonly end: () => Promise<void> } {
  let ended = false;
  const loop = async (): Promise<void> => {
    while (!ended) {
      narrator.incidents(await incidentsNow(stage, clock));
      narrator.resolutions(await settledNow(stage));
      await sleep(POLL_MS);
    }
  };
  const running = loop();
  return {
    end: async () => {
      ended = true;
      await running;
    },
  };
}

function incidentsNow(stage: Stage, clock: Clock): Promise<readonly IncidentJson[]> {
  return listIncidents(stage.pool, {}, clock.now());
}

async function settledNow(stage: Stage): Promise<Settled[]> {
  const found = await stage.pool.query<Settled>(
    `select resolution_id::text as id, intent_id as "intentId", from_state as "from",
            to_state as "to", reason
       from tallyd.resolution
      where outcome = 'applied'
      order by resolution_id`,
  );
  return found.rows;
}

/** Waits until everything expected is there; people act on what was found in between. */
async function untilFound(
  input: DemoInput,
  stage: Stage,
  played: Played,
  narrator: Narrator,
): Promise<readonly Expected[]> {
  const expected = [...played.expected];
  const open = [...played.followUps];
  for (let waited = 0; waited < FOUND_WAIT_MAX_MS; waited += POLL_MS) {
    input.signal.throwIfAborted();
    const incidents = await incidentsNow(stage, input.clock);
    for (const followUp of [...open]) {
      if (!followUp.after.every((one) => isFound(one, incidents))) continue;
      open.splice(open.indexOf(followUp), 1);
      narrator.tell("a person refunds the excess of one of them");
      for (const one of followUp.after) expected.splice(expected.indexOf(one), 1);
      expected.push(...(await followUp.act()));
    }
    const settled = await unsettledRows(stage, played);
    const done = expected.every((one) => isFound(one, incidents)) && settled.length === 0;
    if (done && open.length === 0) break;
    await sleep(POLL_MS);
  }
  return expected;
}

async function unsettledRows(stage: Stage, played: Played): Promise<string[]> {
  const wanted = played.resolutions;
  const found = await stage.pool.query<{ intent_id: string }>(
    `select intent_id
       from unnest($1::text[], $2::text[]) as w (intent_id, state)
       join payment_intents p using (intent_id)
      where p.state <> w.state`,
    [wanted.map((one) => one.intentId), wanted.map((one) => one.state)],
  );
  return found.rows.map((row) => row.intent_id);
}

async function closeBooks(
  input: DemoInput,
  stage: Stage,
  story: {
    readonly payments: number;
    readonly played: Played;
    readonly expected: readonly Expected[];
  },
): Promise<DemoReport> {
  const rows = score(story.expected, await incidentsNow(stage, input.clock));
  const unsettled = await unsettledRows(stage, story.played);
  const injected = story.played.resolutions.length;
  const settled = injected - unsettled.length;
  const slackMessages = stage.slack.control.messages.length;
  const clean = rows.every((row) => row.missed.length === 0 && row.invented.length === 0);
  input.write("");
  input.write(`${String(story.payments)} purchases, injected against found:`);
  input.write("");
  input.write(renderScore(rows));
  input.write("");
  input.write(`rows settled by proof: ${String(settled)} of ${String(injected)}`);
  input.write(`Slack messages: ${String(slackMessages)}`);
  for (const row of rows) {
    for (const name of row.missed) input.write(`missed: ${name}`);
    for (const name of row.invented) input.write(`invented: ${name}`);
  }
  for (const id of unsettled) input.write(`not settled: ${id}`);
  const resolutions = { injected, settled };
  return {
    payments: story.payments,
    rows,
    resolutions,
    slackMessages,
    ok: clean && settled === injected,
  };
}
