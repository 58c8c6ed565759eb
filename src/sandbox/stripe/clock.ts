/** The sandbox's time; every rule about age (keys, events, search) reads this and nothing else. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  readonly now: () => number;
  /** Whole seconds, as objects carry them. */
  readonly seconds: () => number;
  /** Moves the time forward by `ms` (or back, for a negative value). */
  readonly advance: (ms: number) => void;
}

const MS_PER_SECOND = 1_000;

/** A clock on top of `source` (milliseconds) that can be moved. */
export function createClock(source: () => number): Clock {
  let offset = 0;
  const now = (): number => source() + offset;
  return {
    now,
    seconds: () => Math.floor(now() / MS_PER_SECOND),
    advance: (ms) => {
      offset += ms;
    },
  };
}
