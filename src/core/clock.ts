/**
 * The one place of the product that reads the machine's clock; everything else is given a Clock.
 */
export interface Clock {
  /** Now, in UTC. */
  readonly now: () => Date;
}

/** The machine's own clock. */
export const systemClock: Clock = { now: () => new Date() };

/** `date` moved by `ms` milliseconds (negative: into the past). */
export function addMs(date: Date, ms: number): Date {
  return new Date(date.getTime() + ms);
}
