/** Turns the schedules of jobs into cron expressions and ticks. Pure. */
import { ConfigError } from "../core/errors.ts";
import type { Schedule } from "./job.ts";

const SECOND_MS = 1_000;
const MINUTE_S = 60;
const HOUR_S = 3_600;
const DAY_S = 86_400;

/**
 * The cron expression (six fields, UTC) that fires at every start of a window, and maybe more
 * often: an interval that does not divide a minute, hour or day has no expression of its own, so
 * a finer one fires and {@link tickOf} tells whether a new window has begun. Throws ConfigError
 * on an interval that is not a positive whole number of seconds.
 */
export function cronOf(schedule: Schedule): string {
  if ("cron" in schedule) return schedule.cron;
  const seconds = schedule.everyMs / SECOND_MS;
  if (!Number.isSafeInteger(seconds) || seconds < 1) {
    throw new ConfigError([
      `interval ${String(schedule.everyMs)} ms: whole seconds from 1 s on are allowed`,
    ]);
  }
  if (seconds % HOUR_S === 0) return `0 0 ${step(seconds / HOUR_S, DAY_S / HOUR_S)} * * *`;
  if (seconds % MINUTE_S === 0) return `0 ${step(seconds / MINUTE_S, HOUR_S / MINUTE_S)} * * * *`;
  return `${step(seconds, MINUTE_S)} * * * * *`;
}

/**
 * The start of the window that `slot` lies in: the identity of a tick, the same on all replicas.
 * A cron schedule's tick is the slot itself.
 */
export function tickOf(schedule: Schedule, slot: Date): Date {
  if ("cron" in schedule) return slot;
  return new Date(Math.floor(slot.getTime() / schedule.everyMs) * schedule.everyMs);
}

/** A cron field that fires at least at every multiple of `every`, in a cycle of `cycle`. */
function step(every: number, cycle: number): string {
  const grain = greatestDivisor(every, cycle);
  if (grain === cycle) return "0";
  return grain === 1 ? "*" : `*/${String(grain)}`;
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}
