import type { Clock } from "../../core/clock.ts";
import { addMs } from "../../core/clock.ts";

/** How our clock stands to the one of the other side, learnt from the `Date` of its answers. */
export interface ClockGap {
  /** Takes in the `Date` header of an answer that has just come; unreadable ones are ignored. */
  readonly note: (date: string) => void;
  /** How far our clock is ahead in milliseconds, negative: behind; `null`: not known yet. */
  readonly aheadMs: () => number | null;
  /** A moment of our clock in the other side's time. */
  readonly theirTime: (ours: Date) => Date;
}

// `Date` has whole seconds and the way back takes time; both only make us look ahead. The least of
// some samples is near the truth, and an adjusted clock is noticed after this many answers.
const SAMPLES_MAX = 32;

/** Starts without knowledge: until the first answer both clocks are taken for equal. */
export function createClockGap(clock: Clock): ClockGap {
  const samples: number[] = [];
  const aheadMs = (): number | null => (samples.length === 0 ? null : Math.min(...samples));
  return {
    note: (date) => {
      const said = Date.parse(date);
      if (Number.isNaN(said)) return;
      samples.push(clock.now().getTime() - said);
      if (samples.length > SAMPLES_MAX) samples.shift();
    },
    aheadMs,
    theirTime: (ours) => addMs(ours, -(aheadMs() ?? 0)),
  };
}
