/** What a gateway can be told, its bounds and its defaults. */
import type { Pool } from "pg";

import type { AnswerLimits } from "./capture.ts";
import type { GatewayRequest, RequestLimits } from "./request.ts";
import type { Keeping } from "./store.ts";
import { SCHEMA_DEFAULT, tableName } from "./table.ts";

/** Of a whole gateway. Times in milliseconds, sizes in bytes. */
export interface GatewayOptions {
  /**
   * Connections of your own pool, at least two; session locks must work (no transaction pooler).
   */
  readonly pool: Pool;
  /** Where the table of `gatewayTableSql` is; default `tallyd_gateway`. */
  readonly schema?: string;
  /** How long an answer is replayed; default 24 hours. As long as clients go on retrying. */
  readonly keepMs?: number;
  /** How long a signed authorization is known; default 24 hours, never shorter than `keepMs`. */
  readonly authorizationMs?: number;
  /** Largest payment or key header; default 16 KiB. */
  readonly headerBytesMax?: number;
  /** Largest body of a request; default 1 MiB. Give your body parser the same limit. */
  readonly requestBytesMax?: number;
  /** Largest body of an answer that is kept; default 1 MiB. A larger one goes out, once. */
  readonly answerBytesMax?: number;
  /** A run whose client has gone is in doubt after this; default 10 minutes. */
  readonly abandonedAfterMs?: number;
  /** Is told of faults beside a request (the database, mostly); default: nobody. */
  readonly onFault?: (error: unknown) => void;
}

/** Of the guard of paid requests. */
export interface PaymentOptions {
  /** Divides tenants or shops from each other; default: there is one. */
  readonly scope?: (request: GatewayRequest) => string;
  /** Refuse payments without an identifier; default `false`, they are known by what was signed. */
  readonly requireId?: boolean;
  /** How long an arrival waits for the answer of the one before it; default 10 seconds. */
  readonly waitMs?: number;
}

/** Of the guard of keyed requests. */
export interface KeyOptions {
  /** Who asks, after authentication: two callers with one key are two. Stored as a hash alone. */
  readonly principal: (request: GatewayRequest) => string;
  /** Divides routes or services from each other; default: there is one. */
  readonly scope?: (request: GatewayRequest) => string;
  /** Refuse POST and PATCH without a key; default `true`. */
  readonly required?: boolean;
  /** How long an arrival waits for the answer of the one before it; default 0: 409 at once. */
  readonly waitMs?: number;
  /** Run again what ended nobody knows how; default `false`: only if the handler is idempotent. */
  readonly runUnknownAgain?: boolean;
}

/** The default wait of a paid request: longer than a settlement on a fast chain takes. */
export const PAYMENT_WAIT_MS = 10_000;
// Proxies give up after a minute; nobody reads the answer of a request that waits longer.
const WAIT_MS_MAX = 60_000;

const SECOND_MS = 1_000;
const DAY_MS = 86_400_000;
const KIB = 1_024;

interface Bound {
  readonly usual: number;
  readonly least: number;
  readonly most: number;
}

type Bounded =
  | "keepMs"
  | "authorizationMs"
  | "headerBytesMax"
  | "requestBytesMax"
  | "answerBytesMax"
  | "abandonedAfterMs";

// Most: 30 days is the longest documented replay window; 16 MiB is held in memory per request.
const BOUNDS: Readonly<Record<Bounded, Bound>> = {
  keepMs: { usual: DAY_MS, least: SECOND_MS, most: 30 * DAY_MS },
  authorizationMs: { usual: DAY_MS, least: SECOND_MS, most: 30 * DAY_MS },
  headerBytesMax: { usual: 16 * KIB, least: KIB, most: 64 * KIB },
  requestBytesMax: { usual: KIB * KIB, least: 1, most: 16 * KIB * KIB },
  answerBytesMax: { usual: KIB * KIB, least: 1, most: 16 * KIB * KIB },
  abandonedAfterMs: { usual: 600 * SECOND_MS, least: SECOND_MS, most: DAY_MS },
};
// As much as Node itself accepts of a whole head by default.
const ANSWER_HEADER_BYTES_MAX = 16 * KIB;

/** Options with nothing left open. */
export interface ResolvedOptions {
  readonly pool: Pool;
  readonly schema: string;
  readonly keeping: Keeping;
  readonly limits: RequestLimits & AnswerLimits;
  readonly abandonedAfterMs: number;
  readonly onFault: (error: unknown) => void;
}

/** Fills in the defaults. Throws a `RangeError` with one line for each option out of bounds. */
export function resolveOptions(options: GatewayOptions): ResolvedOptions {
  const { pool, schema = SCHEMA_DEFAULT, onFault = ignore } = options;
  const faults: string[] = [];
  const read = (name: Bounded): number => {
    const { usual, least, most } = BOUNDS[name];
    const value = options[name] ?? usual;
    if (!Number.isInteger(value) || value < least || value > most) {
      faults.push(
        `${name} is ${value}: whole numbers from ${least} to ${most} are allowed (default ${usual})`,
      );
    }
    return value;
  };
  try {
    tableName(schema);
  } catch (error) {
    faults.push(error instanceof Error ? error.message : String(error));
  }
  const { max } = pool.options;
  if (max < 2) faults.push("pool.max is 1: at least 2 are needed, one is the sign of life");
  const resolved = {
    ...{ pool, schema, onFault, abandonedAfterMs: read("abandonedAfterMs") },
    keeping: { answerMs: read("keepMs"), authorizationMs: read("authorizationMs") },
    limits: {
      headerBytesMax: read("headerBytesMax"),
      requestBytesMax: read("requestBytesMax"),
      answerBytesMax: read("answerBytesMax"),
      answerHeaderBytesMax: ANSWER_HEADER_BYTES_MAX,
    },
  };
  if (faults.length > 0) throw new RangeError(faults.join("\n"));
  return resolved;
}

/** Throws a `RangeError` on a wait that is out of bounds. */
export function checkWait(waitMs: number): void {
  if (Number.isInteger(waitMs) && waitMs >= 0 && waitMs <= WAIT_MS_MAX) return;
  throw new RangeError(`waitMs is ${waitMs}: whole numbers from 0 to ${WAIT_MS_MAX} are allowed`);
}

function ignore(): void {
  // On purpose empty: the answer to the request says what became of it.
}
