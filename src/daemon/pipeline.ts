/**
 * The fast path as two loops: apply, match and judge in one; deliver in the other, so that a slow
 * Slack never holds up a finding. Woken by the receiver, by other replicas, and by a slow beat.
 */
import { fastRound } from "./fast-path.ts";
import type { FastCounts, FastRound } from "./fast-path.ts";
import { deliverAlerts, readLocal } from "./steps.ts";
import type { Tallyd } from "./tallyd.ts";
import { openWakeChannel } from "./wake-channel.ts";
import { createWakeLoop } from "./wake-loop.ts";
import type { LoopState } from "./wake-loop.ts";

/** The running fast path of one replica. */
export interface Pipeline {
  /** Something was stored: have a look. Cheap, any number of times. */
  readonly wake: () => void;
  readonly start: () => void;
  readonly stop: (graceMs: number) => Promise<void>;
  readonly states: () => ReadonlyMap<string, Readonly<LoopState>>;
  /** What is wrong on this replica, for people; empty: nothing. */
  readonly faults: () => readonly string[];
  /** Counts since the start. */
  readonly counts: () => Readonly<Record<keyof FastCounts, number>>;
}

// A wake that was lost (a replica died between commit and wake) costs this much at most; also
// how soon a grace period that has just ended is judged.
const TICK_MS = 1_000;
// Messages that wait are the job's affair; this only covers a lost wake.
const DELIVER_TICK_MS = 5_000;
// Charges that nobody owns must not turn into a stream of reads of the team's table.
const READ_AHEAD_MIN_MS = 1_000;
// The longest run is half a minute of messages at one a second; one that takes longer hangs.
const HANGING_MAX_MS = 300_000;
// A database that restarts is back within this; longer is an outage.
const FAILING_MAX_MS = 30_000;

/** Makes the fast path; nothing runs before `start`. */
export function createPipeline(tallyd: Tallyd): Pipeline {
  const { log, clock } = tallyd;
  const sum = { applied: 0, placed: 0, judged: 0, findings: 0, unreadable: 0 };
  let channel: ReturnType<typeof openWakeChannel> | undefined;

  const deliver = createWakeLoop(
    { log, clock },
    {
      name: "delivering alerts",
      tickMs: DELIVER_TICK_MS,
      work: async (signal) => {
        const { counts } = await deliverAlerts(tallyd, { early: false, afterStart: false, signal });
        return (counts["sent"] ?? 0) > 0;
      },
    },
  );
  let readAheadAt = -Infinity;
  /** A charge came before its row was read: reads the rows now. True: something to place. */
  const readAhead = async (round: FastRound): Promise<boolean> => {
    const now = performance.now();
    if (round.unowned === 0 || now - readAheadAt < READ_AHEAD_MIN_MS) return false;
    readAheadAt = now;
    const { counts } = await readLocal(tallyd, "changes");
    return (counts["changed"] ?? 0) > 0;
  };
  const judge = createWakeLoop(
    { log, clock },
    {
      name: "the fast path",
      tickMs: TICK_MS,
      work: async (signal) => {
        const round = await fastRound(tallyd, { wait: false, signal });
        if (round === null) {
          // Another replica is at it, and may be past the stage that would see what we stored.
          await channel?.notify();
          return false;
        }
        for (const name of ["applied", "placed", "judged", "findings", "unreadable"] as const) {
          sum[name] += round[name];
        }
        if (round.findings > 0) deliver.wake();
        return (await readAhead(round)) || round.more;
      },
    },
  );
  const loops = new Map([
    ["judge", judge],
    ["deliver", deliver],
  ]);
  return {
    wake: judge.wake,
    start: () => {
      channel = openWakeChannel(tallyd, judge.wake);
      for (const loop of loops.values()) loop.start();
    },
    stop: async (graceMs) => {
      await Promise.all([...loops.values()].map((loop) => loop.stop(graceMs)));
      channel?.close();
    },
    states: () => new Map([...loops].map(([name, loop]) => [name, loop.state])),
    faults: () => [...loops].flatMap(([name, { state }]) => faultOf(name, state, tallyd)),
    counts: () => sum,
  };
}

/** What is wrong with a loop that fails, or neither fails nor ends; empty: nothing. */
function faultOf(
  name: string,
  { lastOkAt, lastError, failuresInRow }: Readonly<LoopState>,
  { clock, startedAt }: Tallyd,
): readonly string[] {
  const okAt = lastOkAt ?? startedAt;
  const silentMs = clock.now().getTime() - okAt.getTime();
  if (failuresInRow === 0) {
    if (silentMs <= HANGING_MAX_MS) return [];
    return [`${name} has not finished since ${okAt.toISOString()}`];
  }
  if (silentMs < FAILING_MAX_MS) return [];
  return [`${name} fails since ${okAt.toISOString()}: ${lastError ?? "no reason"}`];
}
