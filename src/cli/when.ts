import { DURATION_FORM, parseDuration } from "../config/duration.ts";
import { addMs } from "../core/clock.ts";
import { UsageError } from "./failure.ts";

// A date, or a time with its zone: a time without one would be a guess.
const TIME = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2}))?$/;

/** A time as written: `2026-05-04` (UTC midnight) or `2026-05-04T12:00:00Z`. Throws UsageError. */
export function parseTime(text: string, option: string): Date {
  const time = TIME.test(text) ? new Date(text) : new Date(Number.NaN);
  // Date rolls 31 February over into March; a day that does not exist is a slip.
  const dayHolds =
    !Number.isNaN(time.getTime()) &&
    new Date(`${text.slice(0, 10)}T00:00:00Z`).toISOString().startsWith(text.slice(0, 10));
  if (!dayHolds) {
    throw new UsageError([
      `${option}: saw "${text}"; allowed: a day (2026-05-04) or a time with its zone ` +
        "(2026-05-04T12:00:00Z)",
    ]);
  }
  return time;
}

/** A length of time as written: `90d`, `24h`. Throws UsageError. */
export function parseLength(text: string, option: string): number {
  const ms = parseDuration(text);
  if (ms === undefined || ms === 0) {
    throw new UsageError([`${option}: saw "${text}"; allowed: ${DURATION_FORM}`]);
  }
  return ms;
}

/** A time, or a length of time before `now`. Throws UsageError. */
export function parseSince(text: string, option: string, now: Date): Date {
  const ms = parseDuration(text);
  return ms === undefined ? parseTime(text, option) : addMs(now, -ms);
}
