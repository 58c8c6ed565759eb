import { ConfigError, UnreadableError } from "../../core/errors.ts";
import { sqlState } from "../../store/tx.ts";

const PERMISSION_DENIED = "42501";
const QUERY_CANCELED = "57014";
const LOCK_NOT_AVAILABLE = "55P03";
// Class 22: a value that an expression cannot digest; 21000: a subquery that gave several rows.
const ROW_ERRORS = /^(?:22|21)/;
// Class 42 without the missing right: the table is no longer what it was when it was inspected.
const SHAPE_ERRORS = /^42/;

/** Is it one row's value that the query failed on, so that other rows can still be read? */
export function isRowError(error: unknown): boolean {
  return ROW_ERRORS.test(sqlState(error) ?? "");
}

/** Turns an error of the team's database into one that says what it means for tallyd. */
export function translateTeamError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  // Already said what they mean; words in them are not the driver's.
  if (error instanceof UnreadableError || error instanceof ConfigError) return error;
  const state = sqlState(error);
  const cause = { cause: error };
  if (state === undefined || state.length !== 5) {
    const network = "code" in error || /timeout|terminated|connect/i.test(error.message);
    if (!network) return error;
    return new UnreadableError(
      "database",
      `the team's database cannot be reached (${error.message}); check INTENTS_DATABASE_URL`,
      cause,
    );
  }
  if (state === PERMISSION_DENIED) {
    const advice = "grant USAGE on the schema and SELECT on the table to tallyd's role";
    return new UnreadableError("rights", `the team's table: ${error.message}; ${advice}`, cause);
  }
  if (state === QUERY_CANCELED || state === LOCK_NOT_AVAILABLE) {
    const advice =
      state === QUERY_CANCELED
        ? "it took too long: an index on the time of change helps, or another session holds a lock"
        : "another session holds a lock: see pg_stat_activity";
    return new UnreadableError("database", `the team's table: ${error.message}; ${advice}`, cause);
  }
  if (ROW_ERRORS.test(state) || SHAPE_ERRORS.test(state)) {
    const advice = "run `tallyd doctor` to see how the table and the mapping differ";
    return new UnreadableError("shape", `the team's table: ${error.message}; ${advice}`, cause);
  }
  return new UnreadableError("database", `the team's database: ${error.message}`, cause);
}

/** Runs `fn`; errors of the team's database come out translated. */
export async function reading<T>(fn: () => Promise<T>): Promise<T> {
  try {
    return await fn();
  } catch (error) {
    throw translateTeamError(error);
  }
}
