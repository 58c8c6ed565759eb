/** One request through the gateway: admitted once, waited for, replayed or refused. */
import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

import { holdAnswer, replayAnswer, sendProblem } from "./capture.ts";
import type { AnswerLimits } from "./capture.ts";
import type { Ending } from "./outcome.ts";
import { problemOf } from "./problem.ts";
import type { Problem, ProblemCode } from "./problem.ts";
import { admit, dropClaim, storeAnswer, storeUnknown } from "./store.ts";
import type { Admission, Answer, Arrival, Claim, Keeping, StoreDeps } from "./store.ts";

/** The numbers of a gateway since its start; hand them to whatever you measure with. */
export interface GatewayCounters {
  /** One identifier or key with two payments or requests: a bug of a client, or a guess. */
  conflicts: number;
  /** Answers replayed: retries that neither paid nor ran again. */
  replays: number;
  /** One signed authorization under two identifiers: a bug of an agent, or an attack. */
  authorizationReuses: number;
  /** Runs of which nobody knows how they ended. */
  unknownEnds: number;
}

/** What the guards of one gateway share. */
export interface GuardDeps extends StoreDeps {
  readonly running: Set<string>;
  readonly counters: GatewayCounters;
  readonly keeping: Keeping;
  readonly limits: AnswerLimits;
  readonly abandonedAfterMs: number;
  /** Is told of what went wrong beside a request; must not throw. */
  readonly onFault: (error: unknown) => void;
  /** Runs at the end of a request. */
  readonly afterEnd: () => void;
  /** Requests that wait for another's answer now. */
  readonly waiting: { count: number };
}

/** How one kind of request is guarded. */
export interface GuardRules {
  readonly waitMs: number;
  readonly runUnknownAgain: boolean;
  readonly conflict: ProblemCode;
  readonly endingOf: (answer: Answer) => Ending;
}

// A look is one read by key; half a second is below what a person or an agent notices.
const LOOK_FIRST_MS = 25;
const LOOK_LAST_MS = 500;
// Each waits with a look now and then; more would crowd out those who could end it.
const WAITING_MAX = 200;

/** Takes one request; calls `run` for at most one of all that are the same. */
export async function guardRequest(
  deps: GuardDeps,
  rules: GuardRules,
  input: {
    readonly arrival: Arrival;
    readonly response: ServerResponse;
    readonly run: () => void;
  },
): Promise<void> {
  const { arrival, response, run } = input;
  let admission: Admission;
  try {
    admission = await admitted(deps, rules, arrival, response);
  } catch (error) {
    deps.onFault(error);
    // Without the record nobody can say that this was not done before: it is not done now.
    sendProblem(response, problemOf("store_unavailable"));
    return;
  }
  if (admission.kind === "admitted") {
    runOnce(deps, rules, response, admission.claim);
    run();
  } else if (admission.kind === "replay") {
    deps.counters.replays += 1;
    replayAnswer(response, admission.answer);
  } else {
    if (admission.kind === "conflict") deps.counters.conflicts += 1;
    if (admission.kind === "authorization_reused") deps.counters.authorizationReuses += 1;
    sendProblem(response, problemOf(codeOf(admission.kind, rules)));
  }
}

function codeOf(
  kind: Exclude<Admission["kind"], "admitted" | "replay">,
  rules: GuardRules,
): ProblemCode {
  switch (kind) {
    case "conflict":
      return rules.conflict;
    case "unknown":
      return "outcome_unknown";
    case "expired":
      return "response_expired";
    case "not_kept":
      return "response_not_kept";
    case "authorization_reused":
    case "in_progress":
      return kind;
  }
}

/** Asks until there is an answer or the time is over. */
async function admitted(
  deps: GuardDeps,
  rules: GuardRules,
  arrival: Arrival,
  response: ServerResponse,
): Promise<Admission> {
  const ask = (): Promise<Admission> =>
    admit(deps, arrival, { ...deps.keeping, runUnknownAgain: rules.runUnknownAgain });
  const until = performance.now() + rules.waitMs;
  let admission = await ask();
  if (admission.kind !== "in_progress" || deps.waiting.count >= WAITING_MAX) return admission;
  deps.waiting.count += 1;
  try {
    for (
      let pause = LOOK_FIRST_MS;
      performance.now() < until && !response.destroyed;
      pause *= 1.5
    ) {
      await sleep(Math.min(pause, LOOK_LAST_MS));
      admission = await ask();
      if (admission.kind !== "in_progress") return admission;
    }
    return admission;
  } finally {
    deps.waiting.count -= 1;
  }
}

/** Holds the answer of the run, stores it, and only then lets it go. */
function runOnce(deps: GuardDeps, rules: GuardRules, response: ServerResponse, claim: Claim): void {
  let ended = false;
  deps.running.add(claim.attempt);
  const onEnd = async (answer: Answer): Promise<Problem | null> => {
    ended = true;
    const ending = isStatus(answer.status) ? rules.endingOf(answer) : "unknown";
    if (ending === "unknown") deps.counters.unknownEnds += 1;
    await keep(deps, claim, () => write(deps, claim, answer, ending));
    deps.afterEnd();
    return instead(claim, answer, ending);
  };
  holdAnswer(response, deps.limits, { onEnd, onFault: deps.onFault });
  response.once("close", () => {
    if (ended) return;
    // The client has gone and the run has not: it gets its time, and then is in doubt.
    setTimeout(() => {
      if (ended) return;
      deps.counters.unknownEnds += 1;
      void keep(deps, claim, () => storeUnknown(deps, claim));
    }, deps.abandonedAfterMs).unref();
  });
}

/** What Node can send. Anything else reaches nobody, so what was done is not known. */
function isStatus(status: number): boolean {
  return Number.isInteger(status) && status >= 100 && status <= 999;
}

/**
 * A demand to pay (402) after an earlier run that may have paid would make the client pay again:
 * the doubt is said in its place.
 */
function instead(claim: Claim, answer: Answer, ending: Ending): Problem | null {
  if (!claim.wasUnknown || ending !== "nothing" || answer.status !== 402) return null;
  return problemOf("outcome_unknown");
}

async function write(deps: GuardDeps, claim: Claim, answer: Answer, ending: Ending): Promise<void> {
  if (ending === "keep") await storeAnswer(deps, claim, { answer, keeping: deps.keeping });
  else if (ending === "unknown") await storeUnknown(deps, claim);
  else await dropClaim(deps, claim);
}

// A minute: longer than a failover takes; past it the process gives up its sign of life.
const KEEP_TRIES_MAX = 20;
const KEEP_AGAIN_MS = 3_000;

/** Writes the end once before the answer goes out, and goes on trying behind it. Never rejects. */
async function keep(deps: GuardDeps, claim: Claim, attempt: () => Promise<void>): Promise<void> {
  try {
    await attempt();
    deps.running.delete(claim.attempt);
  } catch (error) {
    deps.onFault(error);
    void keepTrying(deps, attempt).finally(() => deps.running.delete(claim.attempt));
  }
}

async function keepTrying(deps: GuardDeps, attempt: () => Promise<void>): Promise<void> {
  for (let tries = 1; tries <= KEEP_TRIES_MAX; tries += 1) {
    await sleep(KEEP_AGAIN_MS, undefined, { ref: false });
    try {
      await attempt();
      return;
    } catch (error) {
      deps.onFault(error);
    }
  }
  // Otherwise the request would be "in progress" for as long as this process lives.
  deps.session.close();
}
