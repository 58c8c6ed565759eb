/**
 * Delivers the outbox: one sender per way out, each at its pace, at least once. A message is told
 * twice when the process dies between the answer and the commit, and when the other side fails
 * after it took the message: one repeat is better than a loss.
 */
import { setTimeout as sleep } from "node:timers/promises";

import type { Pool } from "pg";

import { addMs } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import { forgetHook, markHookOk, markHookPaused, readHook, readHooks } from "../store/hooks.ts";
import type { HookErrorCode, HookRow } from "../store/hooks.ts";
import type { ClaimedMessage, Fate } from "../store/outbox.ts";
import { NEVER, claimNext, hasDue, settle } from "../store/outbox.ts";
import { copyMessage, moveWaiting } from "../store/outbox-merge.ts";
import { asOnlySender } from "../store/sender-lock.ts";
import { gatherBacklog } from "./backlog.ts";
import type { Payload } from "./payload.ts";
import { readPayload } from "./payload.ts";
import type { SendOutcome } from "./send-outcome.ts";
import { wayWords } from "./way-words.ts";
import type { AnyChannel, Senders, Way } from "./ways.ts";
import { ALL_CHANNELS, isForPeople, wayOf } from "./ways.ts";

export interface DeliverDeps {
  /** Each channel holds one connection while it sends. */
  readonly pool: Pool;
  readonly now: () => Promise<Date>;
  readonly log: Log;
  readonly hooks: Senders;
  /** Milliseconds between two messages of one way out. Default: its own pace. */
  readonly paceMs?: number;
}

export interface DeliverOptions {
  /** Messages per channel in this call. */
  readonly limit: number;
  /** Also those that only wait for company: for a command that ends after this call. */
  readonly early?: boolean;
  /** The first call of this process: tries a hook again that failed before. */
  readonly afterStart?: boolean;
  /** Stops after the message that is being sent. */
  readonly signal?: AbortSignal;
}

export interface Delivered {
  readonly sent: number;
  /** Sendings that did not end well; the messages are kept. */
  readonly failed: number;
}

// First wait after a failure; it doubles with each in a row. Slack's small troubles last seconds.
const PAUSE_FIRST_MS = 5_000;
// New alerts probe the hook at least this often, so the end of an outage is noticed in minutes.
const PAUSE_MAX_MS = 300_000;
// A dead hook comes back only through a person; asking more often would only fill a log.
const DEAD_PAUSE_MS = 600_000;
/**
 * Waits before an uncertain message is repeated, one per repeat: five at most. A hook that fails so
 * long is down rather than lossy, and what is left is named in the digest once it works again.
 */
export const UNCERTAIN_WAITS_MS = [30_000, 300_000, 1_800_000, 7_200_000, 21_600_000] as const;
// To a program a repeat does no harm, so it goes on at the longest wait. After three days (as long
// as Stripe repeats a webhook) it is the message that the program does not take.
export const PROGRAM_GIVES_UP_MS = 3 * 86_400_000;

/** Sends what is due on every channel and gives the counts. Network trouble is no error. */
export async function deliverDue(deps: DeliverDeps, options: DeliverOptions): Promise<Delivered> {
  // A sender holds a connection: one that has nothing to do must not.
  const used = new Map((await readHooks(deps.pool)).map((hook) => [hook.channel, hook]));
  const busy = ALL_CHANNELS.filter((channel) => {
    const hook = used.get(channel);
    if (hook === undefined) return false;
    return hook.waiting + hook.uncertain > 0 || wayOf(deps.hooks, channel).send === null;
  });
  const all = await Promise.all(
    busy.map((channel) =>
      asOnlySender(deps.pool, channel, () => deliverChannel(deps, channel, options)),
    ),
  );
  const sent = all.reduce((sum, one) => sum + (one?.sent ?? 0), 0);
  return { sent, failed: all.reduce((sum, one) => sum + (one?.failed ?? 0), 0) };
}

async function deliverChannel(
  deps: DeliverDeps,
  channel: AnyChannel,
  options: DeliverOptions,
): Promise<Delivered> {
  const way = wayOf(deps.hooks, channel);
  const hook = await hookOf(deps, channel, way);
  const start = await deps.now();
  const done = { sent: 0, failed: 0 };
  if (isPaused(hook, start, options)) {
    if (hook?.lastErrorCode === "dead") await detour(deps, channel, hook.lastError ?? "");
    return done;
  }
  const healthy = (hook?.failingSince ?? null) === null;
  if (isForPeople(channel)) await gatherBacklog(deps.pool, { channel, now: start, healthy });
  const paceMs = way.send === null ? 0 : (deps.paceMs ?? way.paceMs);
  const lastOkAt = hook?.lastOkAt ?? null;
  let waitMs = lastOkAt === null ? 0 : paceMs - (start.getTime() - lastOkAt.getTime());
  while (done.sent + done.failed < options.limit && options.signal?.aborted !== true) {
    const about = {
      ...{ channel, now: await deps.now(), early: options.early ?? false },
      inOrder: way.forProgram,
    };
    // Claimed after the wait: a process that dies waiting has not begun to send.
    if (!(await hasDue(deps.pool, about))) break;
    if (!(await pause(Math.min(waitMs, paceMs), options.signal))) break;
    const message = await claimNext(deps.pool, about);
    if (message === null) break;
    waitMs = paceMs;
    const goesOn = await deliverOne(deps, { channel, message, way, hook });
    if (goesOn === "sent") done.sent += 1;
    else done.failed += 1;
    if (goesOn === "stop") break;
  }
  return done;
}

/** What is known of a way out. One that is configured no more has no trouble either. */
async function hookOf(deps: DeliverDeps, channel: AnyChannel, way: Way): Promise<HookRow | null> {
  const hook = await readHook(deps.pool, channel);
  if (hook === null || way.send !== null) return hook;
  await forgetHook(deps.pool, channel);
  return null;
}

function isPaused(hook: HookRow | null, now: Date, options: DeliverOptions): boolean {
  if (hook === null || hook.pausedUntil === null || hook.pausedUntil <= now) return false;
  // A restart may have brought a new address; what the other side asked for holds all the same.
  return options.afterStart !== true || hook.lastErrorCode === "rate_limit";
}

/**
 * What waits for a hook for criticals that is gone goes where the others go: somebody reads that.
 * `tried` stays as well, to find out when there is a hook again.
 */
async function detour(
  { pool, hooks, log }: DeliverDeps,
  from: AnyChannel,
  reason: string,
  tried?: ClaimedMessage,
): Promise<void> {
  if (from !== "slack_critical" || hooks.slack === null) return;
  const isFirst = tried !== undefined && tried.lastError !== reason;
  if (isFirst) await copyMessage(pool, tried.messageId, "slack");
  const moved = await moveWaiting(pool, { from, to: "slack", except: reason });
  if (isFirst || moved > 0) log.warn("criticals go to the other Slack hook: theirs is dead");
}

/** False: the wait was cut short by the signal. */
async function pause(ms: number, signal: AbortSignal | undefined): Promise<boolean> {
  if (ms <= 0) return true;
  try {
    await sleep(ms, undefined, signal === undefined ? {} : { signal });
    return true;
  } catch (error) {
    if (signal?.aborted === true) return false;
    throw error;
  }
}

interface Sending {
  readonly channel: AnyChannel;
  readonly message: ClaimedMessage;
  readonly way: Way;
  readonly hook: HookRow | null;
}

/** `next`: this message failed by its own fault. `stop`: the hook did, so nothing else is tried. */
async function deliverOne(deps: DeliverDeps, sending: Sending): Promise<"sent" | "next" | "stop"> {
  const { channel, message, way } = sending;
  const payload = readPayload(message.payload);
  if (way.send === null) {
    logMessage(deps.log, message, payload);
    await settle(deps.pool, message.messageId, { status: "sent", at: await deps.now() });
    return "sent";
  }
  const outcome = await way.send(message, payload);
  const at = await deps.now();
  if (outcome.kind === "sent") {
    await settle(deps.pool, message.messageId, { status: "sent", at });
    await markHookOk(deps.pool, channel, at);
    return "sent";
  }
  if (outcome.kind === "refused" || isGivenUp(sending, outcome, at)) {
    const { reason } = outcome;
    deps.log.error("a message is refused; it is told here instead", { channel, reason });
    logMessage(deps.log, message, payload);
    await settle(deps.pool, message.messageId, { status: "dead", error: reason });
    return "next";
  }
  await putOff(deps, sending, outcome, at);
  if (outcome.kind === "dead") await detour(deps, channel, outcome.reason, message);
  return "stop";
}

function isGivenUp(
  { way, message }: Sending,
  outcome: SendOutcome,
  at: Date,
): outcome is Extract<SendOutcome, { kind: "uncertain" }> {
  const until = addMs(message.createdAt, PROGRAM_GIVES_UP_MS);
  return way.forProgram && outcome.kind === "uncertain" && until <= at;
}

function logMessage(log: Log, message: ClaimedMessage, payload: Payload): void {
  const fields = { kind: message.kind, severity: message.severity, incident: message.incidentId };
  if (message.severity === "critical") log.error(payload.text, fields);
  else log.warn(payload.text, fields);
}

type Trouble = Exclude<SendOutcome, { kind: "sent" } | { kind: "refused" }>;

async function putOff(
  deps: DeliverDeps,
  sending: Sending,
  trouble: Trouble,
  at: Date,
): Promise<void> {
  const { channel, message, hook } = sending;
  const pauseMs = pauseOf(trouble, hook?.failures ?? 0);
  const error = trouble.kind === "rate_limited" ? "HTTP 429" : trouble.reason;
  const until = addMs(at, pauseMs);
  await settle(deps.pool, message.messageId, fateOf(sending, trouble, { at, error }));
  await markHookPaused(deps.pool, { channel, at, until, code: codeOf(trouble), error });
  const fields = { channel, error, retryAt: until.toISOString() };
  if (trouble.kind === "dead") {
    const { name, setting } = wayWords(channel);
    deps.log.error(`the ${name} is dead: alerts wait until a new ${setting} is set`, fields);
  } else {
    deps.log.warn(`the ${wayWords(channel).name} takes no messages now: alerts wait`, fields);
  }
}

function pauseOf(trouble: Trouble, failures: number): number {
  if (trouble.kind === "rate_limited") return trouble.retryAfterMs;
  if (trouble.kind === "dead") return DEAD_PAUSE_MS;
  return Math.min(PAUSE_FIRST_MS * 2 ** Math.min(failures, 10), PAUSE_MAX_MS);
}

function codeOf(trouble: Trouble): HookErrorCode {
  switch (trouble.kind) {
    case "rate_limited":
      return "rate_limit";
    case "dead":
      return "dead";
    case "unreachable":
      return "network";
    case "uncertain":
      return "server";
  }
}

function fateOf(
  { message, way }: Sending,
  trouble: Trouble,
  when: { readonly at: Date; readonly error: string },
): Fate {
  const { error } = when;
  // It did not arrive: it stays as it was, and the pause of the channel says when it is its turn.
  if (trouble.kind !== "uncertain") {
    return { status: message.status, dueAt: message.dueAt, error, counted: false };
  }
  const last = way.forProgram ? UNCERTAIN_WAITS_MS.at(-1) : undefined;
  const waitMs = UNCERTAIN_WAITS_MS[message.attempts - 1] ?? last;
  const dueAt = waitMs === undefined ? NEVER : addMs(when.at, waitMs);
  return { status: "uncertain", dueAt, error, counted: true };
}
