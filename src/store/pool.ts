import pg from "pg";
import type { CustomTypesConfig, Pool, PoolClient } from "pg";

/** Whatever can run a statement: a pool, or a client inside a transaction. */
export type Db = Pick<Pool | PoolClient, "query">;

/** What a pool needs to know. */
export interface PoolOptions {
  /** PostgreSQL connection URL. */
  readonly url: string;
  /** Shown in `pg_stat_activity`, so that an operator sees who holds what. */
  readonly applicationName: string;
  /** Most connections that the pool opens. */
  readonly max: number;
}

// A database that does not answer for ten seconds is out of reach; waiting longer hides it.
const CONNECT_WAIT_MAX_MS = 10_000;
// Long enough that the scheduler's beat reuses connections, short enough to free them at night.
const IDLE_MAX_MS = 60_000;
// TCP keep-alive starts after this, so that a firewall's silent drop is noticed within minutes.
const KEEP_ALIVE_AFTER_MS = 30_000;

// Type ids of PostgreSQL's catalogue (pg_type.oid); they are part of its protocol and never change.
const OID = {
  int8: 20,
  date: 1082,
  timestamp: 1114,
  timestamptz: 1184,
  int8Array: 1016,
  numericArray: 1231,
  textArray: 1009,
  timestampArray: 1115,
  dateArray: 1182,
} as const;

// pg's own table; its type allows listed ids only, the function takes any.
const usualParser = pg.types.getTypeParser as (
  oid: number,
  format?: "text" | "binary",
) => (text: string) => unknown;

const asText = (value: string): string => value;

function parseTextArray(value: string): (string | null)[] {
  return usualParser(OID.textArray, "text")(value) as (string | null)[];
}

function parseInt8Array(value: string): (bigint | null)[] {
  return parseTextArray(value).map((item) => (item === null ? null : BigInt(item)));
}

/** A time that a `Date` cannot hold (infinity, a foreign DateStyle) is refused, never guessed. */
function parseTimestamptz(value: string): Date {
  const parsed = usualParser(OID.timestamptz, "text")(value);
  if (parsed instanceof Date && !Number.isNaN(parsed.getTime())) return parsed;
  throw new RangeError(
    `timestamptz "${value}" cannot be read: finite times in DateStyle ISO are allowed`,
  );
}

// Times without a zone stay text: reading them in the zone of this machine would be a guess.
const PARSERS = new Map<number, (value: string) => unknown>([
  [OID.int8, BigInt],
  [OID.int8Array, parseInt8Array],
  [OID.numericArray, parseTextArray],
  [OID.timestamptz, parseTimestamptz],
  [OID.timestamp, asText],
  [OID.date, asText],
  [OID.timestampArray, parseTextArray],
  [OID.dateArray, parseTextArray],
]);

// The parsers of this pool alone: pg's global table stays as other code in the process expects it.
const TYPES: CustomTypesConfig = {
  getTypeParser: (oid: number, format?: "text" | "binary"): unknown => {
    const own = format === "binary" ? undefined : PARSERS.get(oid);
    return own ?? usualParser(oid, format);
  },
};

/**
 * Opens a pool whose rows hold `bigint` for int8, text for numeric (see {@link toBigint}), `Date`
 * for timestamptz (milliseconds; microseconds are cut), text for times without a zone and parsed
 * values for json and jsonb. Nothing connects before the first query; the caller ends the pool.
 * A connection that drops is replaced at the next query and never takes the process down.
 */
export function openPool(options: PoolOptions): Pool {
  const pool = new pg.Pool({
    connectionString: options.url,
    application_name: options.applicationName,
    max: options.max,
    connectionTimeoutMillis: CONNECT_WAIT_MAX_MS,
    idleTimeoutMillis: IDLE_MAX_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
    types: TYPES,
  });
  // The query that meets the broken connection reports it; an error between queries has no reader
  // and would end the process. A checked-out client needs its own listener: the pool removes its.
  pool.on("error", ignoreDroppedConnection);
  pool.on("connect", (client) => {
    client.on("error", ignoreDroppedConnection);
  });
  return pool;
}

function ignoreDroppedConnection(): void {
  // On purpose empty: see openPool.
}

/**
 * Turns a `numeric` or `int8` value of a row into a `bigint`. Accepts an integer with zeros after
 * the point (`12.00`), throws a `RangeError` on a fraction, NaN or infinity: amounts are whole
 * minor units, and a rounded one would be a wrong one.
 */
export function toBigint(value: string | number | bigint): bigint {
  if (typeof value === "bigint") return value;
  if (typeof value === "number" && !Number.isSafeInteger(value)) {
    throw new RangeError(`number ${String(value)} is not a whole number that is held exactly`);
  }
  const match = /^([+-]?\d+)(?:\.0*)?$/.exec(String(value));
  if (match?.[1] === undefined) {
    throw new RangeError(`"${String(value)}" is not a whole number of minor units`);
  }
  return BigInt(match[1]);
}
