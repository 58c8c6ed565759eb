import pg from "pg";

/**
 * A configured zone as it stands behind `at time zone`. An offset becomes an interval: as text,
 * PostgreSQL would read `+02:00` in the POSIX way, which is west of Greenwich. The setting was
 * checked to be a zone name or an offset, so the literal carries nothing else.
 */
export function zoneSql(zone: string): string {
  const literal = pg.escapeLiteral(zone);
  return /^[+-]/.test(zone) ? `interval ${literal}` : literal;
}

/**
 * The instant of a wall time in `zone`. When a clock goes back, an hour of wall times happens twice
 * and PostgreSQL takes the later one; a row written in the earlier one would then lie ahead of the
 * clock. So a wall time that is ambiguous and still to come is taken as the earlier instant: an age
 * is never too high by it, and never negative (case B45).
 */
export function instantSql(wall: string, zone: string): string {
  const later = `(${wall} at time zone ${zone})`;
  const earlier = `(${later} - interval '1 hour')`;
  return (
    `(case when ${later} > now() and (${earlier} at time zone ${zone}) = ${wall} ` +
    `then ${earlier} else ${later} end)`
  );
}

// The widest jump of a wall clock in the zones in use is one hour; three leave room for history.
const WALL_JUMP_MAX = "interval '3 hours'";

/**
 * A lower bound for an index search on wall times: never later than the exact bound, whatever the
 * clock did in between.
 */
export function wallBoundSql(parameter: string, zone: string): string {
  return `((${parameter}::timestamptz at time zone ${zone}) - ${WALL_JUMP_MAX})`;
}

const MICROS_PER_SECOND = 1_000_000n;
const MICROS_PER_MS = 1_000n;
// 9999-12-31: the last day that every part of the way can spell.
const MICROS_MAX = 253_402_300_799_999_999n;

/**
 * Microseconds since 1970 of `extract(epoch from …)::text`; `null`: infinite, ancient, or no
 * time.
 */
export function parseMicros(text: string): bigint | null {
  const match = /^(\d{1,13})(?:\.(\d{1,6}))?$/.exec(text);
  if (match?.[1] === undefined) return null;
  const micros = BigInt(match[1]) * MICROS_PER_SECOND + BigInt((match[2] ?? "").padEnd(6, "0"));
  return micros <= MICROS_MAX ? micros : null;
}

/** ISO 8601 in UTC with microseconds. */
export function isoOfMicros(micros: bigint): string {
  const whole = new Date(Number(micros / MICROS_PER_MS)).toISOString();
  return whole.replace("Z", `${String(micros % MICROS_PER_MS).padStart(3, "0")}Z`);
}
