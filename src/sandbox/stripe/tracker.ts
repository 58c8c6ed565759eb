/** Counts work in flight, so that a test can wait until nothing is left to happen. */
export interface Tracker {
  readonly begin: () => void;
  readonly end: () => void;
  /** Runs `task` after `ms` real milliseconds; counted as work until it has run. */
  readonly later: (ms: number, task: () => void) => void;
  /** Resolves when nothing is in flight. */
  readonly idle: () => Promise<void>;
  /** Drops everything that waits; for closing. */
  readonly stop: () => void;
}

/** A tracker with nothing in flight. */
export function createTracker(): Tracker {
  let active = 0;
  let waiters: (() => void)[] = [];
  const timers = new Set<NodeJS.Timeout>();
  const begin = (): void => {
    active += 1;
  };
  const end = (): void => {
    active -= 1;
    if (active > 0) return;
    const ready = waiters;
    waiters = [];
    for (const wake of ready) wake();
  };
  return {
    begin,
    end,
    later: (ms, task) => {
      begin();
      const timer = setTimeout(() => {
        timers.delete(timer);
        try {
          task();
        } finally {
          end();
        }
      }, ms);
      timers.add(timer);
    },
    idle: () =>
      active === 0 ? Promise.resolve() : new Promise((resolve) => waiters.push(resolve)),
    stop: () => {
      for (const timer of timers) {
        clearTimeout(timer);
        end();
      }
      timers.clear();
    },
  };
}
