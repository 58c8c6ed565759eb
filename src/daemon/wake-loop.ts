import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import { messageOf } from "../core/message.ts";

/** A loop that runs when it is woken, and at a slow beat in case nobody woke it. */
export interface WakeLoop {
  /** Asks for one more run; cheap, any number of times. */
  readonly wake: () => void;
  readonly start: () => void;
  /** Lets the run under way end (it sees the abort after `graceMs`), then stops. */
  readonly stop: (graceMs: number) => Promise<void>;
  readonly state: Readonly<LoopState>;
}

/** How a loop fares, for health and metrics. */
export interface LoopState {
  runs: number;
  failures: number;
  /** In a row; 0 while healthy. */
  failuresInRow: number;
  lastOkAt: Date | null;
  lastError: string | null;
}

export interface WakeLoopDeps {
  readonly log: Log;
  readonly clock: Clock;
}

/** What a loop is. */
export interface LoopOptions {
  /** For the log: "the fast path". */
  readonly name: string;
  /** Pause after a run that nobody interrupts by a wake, milliseconds. */
  readonly tickMs: number;
  readonly work: LoopWork;
}

/** What one run tells: `true` asks for another one at once, because a batch was full. */
export type LoopWork = (signal: AbortSignal) => Promise<boolean>;

// A first failure is often a moment's hiccup, a lasting one (database down) must not spin.
const BACKOFF_FIRST_MS = 250;
const BACKOFF_MAX_MS = 10_000;

/**
 * Makes a loop around `work`. One run at a time; a wake during a run causes exactly one more.
 * Errors are logged, waited out with doubling pauses and never leave the loop.
 */
export function createWakeLoop(deps: WakeLoopDeps, options: LoopOptions): WakeLoop {
  const state = freshState();
  const controller = new AbortController();
  let woken = false;
  let stopping = false;
  let endSleep: (() => void) | undefined;
  let done: Promise<void> | undefined;

  const sleep = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      endSleep = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  const isStopping = (): boolean => stopping;
  const loop = async (): Promise<void> => {
    while (!isStopping()) {
      woken = false;
      if (await attempt(deps, { ...options, state, signal: controller.signal })) woken = true;
      if (isStopping()) return;
      if (state.failuresInRow > 0) await sleep(backoffMs(state.failuresInRow));
      else if (!woken) await sleep(options.tickMs);
    }
  };
  return {
    state,
    wake: () => {
      woken = true;
      // A failing loop is not hurried: the pause is what protects the database.
      if (state.failuresInRow === 0) endSleep?.();
    },
    start: () => {
      done ??= loop();
    },
    stop: async (graceMs) => {
      stopping = true;
      endSleep?.();
      const timer = setTimeout(() => {
        controller.abort(new Error("tallyd is stopping"));
      }, graceMs);
      await done;
      clearTimeout(timer);
    },
  };
}

/** One run; true when it asks for another. Errors become the loop's state and one log line. */
async function attempt(
  deps: WakeLoopDeps,
  run: LoopOptions & { readonly state: LoopState; readonly signal: AbortSignal },
): Promise<boolean> {
  const { state, signal } = run;
  state.runs += 1;
  try {
    const more = await run.work(signal);
    state.failuresInRow = 0;
    state.lastError = null;
    state.lastOkAt = deps.clock.now();
    return more;
  } catch (error) {
    if (signal.aborted) return false;
    state.failures += 1;
    state.failuresInRow += 1;
    state.lastError = messageOf(error);
    // The first of a row is news, the rest is the same news again.
    const level = state.failuresInRow === 1 ? "warn" : "debug";
    deps.log[level](`${run.name} failed and is tried again`, { error });
    return false;
  }
}

function freshState(): LoopState {
  return { runs: 0, failures: 0, failuresInRow: 0, lastOkAt: null, lastError: null };
}

/** 250 ms, 500 ms, 1 s … 10 s. */
function backoffMs(failuresInRow: number): number {
  return Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** Math.min(failuresInRow - 1, 10));
}
