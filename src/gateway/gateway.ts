/**
 * tallyd/gateway: for who sells over x402, or takes POSTs with an Idempotency-Key. A middleware in
 * front of `@x402/express` (whose payment-identifier support only declares): one payment runs the
 * handler once and gets one answer, however often and from how many sides it arrives.
 */
import type { ServerResponse } from "node:http";

import { sha256 } from "./canonical.ts";
import { sendProblem } from "./capture.ts";
import { guardRequest } from "./guard.ts";
import type { GatewayCounters, GuardDeps } from "./guard.ts";
import { readKey } from "./key.ts";
import { PAYMENT_WAIT_MS, checkWait, resolveOptions } from "./options.ts";
import type { GatewayOptions, KeyOptions, PaymentOptions } from "./options.ts";
import { endingOfKeyed, endingOfPayment } from "./outcome.ts";
import { paymentHeader, readPayment } from "./payment.ts";
import { problemOf } from "./problem.ts";
import type { GatewayRequest, RequestLimits } from "./request.ts";
import { makeSession } from "./session.ts";
import { forgetUnknown, purgeRows } from "./store.ts";

export { canonicalJson, deterministicPaymentId } from "./canonical.ts";
export type { RequestContent } from "./canonical.ts";
export type { GatewayCounters } from "./guard.ts";
export type { GatewayOptions, KeyOptions, PaymentOptions } from "./options.ts";
export type { Problem, ProblemCode } from "./problem.ts";
export type { GatewayRequest } from "./request.ts";
export { gatewayTableSql } from "./table.ts";

/** A middleware for Express 4 and 5 (or `connect`). */
export type Guard = (
  request: GatewayRequest,
  response: ServerResponse,
  next: (error?: unknown) => void,
) => Promise<void>;

/** Which request: as the columns of the table name it. */
export interface RequestName {
  readonly scope: string;
  /** The payer's address in lower case, or what `principal` of the keys gave. */
  readonly principal: string;
  readonly id: string;
}

/** The gateway of one process. */
export interface Gateway {
  /** Guards paid requests; mount it behind the body parser and in front of `paymentMiddleware`. */
  readonly payments: (options?: PaymentOptions) => Guard;
  /** Guards requests with an Idempotency-Key; mount it behind authentication and body parser. */
  readonly keys: (options: KeyOptions) => Guard;
  /** The numbers since the start of the process; read them, they go on counting. */
  readonly counters: Readonly<GatewayCounters>;
  /** Deletes what is past its time, which otherwise happens along with requests; gives how many. */
  readonly purge: () => Promise<number>;
  /** Frees a request whose doubtful end a person has looked up. `false`: there is none in doubt. */
  readonly forget: (name: RequestName) => Promise<boolean>;
  /**
   * Gives the connection back that is this process's sign of life. Runs still open are in doubt.
   */
  readonly close: () => void;
}

// Rows in need of deletion are harmless; ten minutes keep the table near its size.
const PURGE_EVERY_MS = 600_000;
// Idempotency-Key is for requests that are not idempotent by themselves (RFC 9110, 9.2.2).
const KEYED_METHODS: ReadonlySet<string> = new Set(["POST", "PATCH"]);

/**
 * Makes the gateway of this process. It takes one connection of the pool for itself, at the first
 * request. Throws a `RangeError` that names every option out of its bounds.
 */
export function createGateway(options: GatewayOptions): Gateway {
  const { pool, schema, limits, keeping, abandonedAfterMs, onFault } = resolveOptions(options);
  const counters: GatewayCounters = {
    ...{ conflicts: 0, replays: 0, authorizationReuses: 0, unknownEnds: 0 },
  };
  const session = makeSession(pool);
  const deps: GuardDeps = {
    ...{ pool, schema, session, counters, keeping, limits, abandonedAfterMs, onFault },
    waiting: { count: 0 },
    running: new Set(),
    afterEnd: purgeNowAndThen({ pool, schema }, onFault),
  };
  return {
    payments: (own = {}) => guardPayments(deps, { ...limits, ...paymentDefaults(own) }),
    keys: (own) => guardKeys(deps, limits, own),
    counters,
    purge: () => purgeRows(deps),
    forget: async (name) =>
      (await forgetUnknown(deps, name)) ||
      forgetUnknown(deps, { ...name, principal: sha256(name.principal) }),
    close: session.close,
  };
}

function paymentDefaults(own: PaymentOptions): Required<PaymentOptions> {
  return { scope: () => "x402", requireId: false, waitMs: PAYMENT_WAIT_MS, ...own };
}

function guardPayments(deps: GuardDeps, rules: RequestLimits & Required<PaymentOptions>): Guard {
  checkWait(rules.waitMs);
  return handingOver(async (request, response, next) => {
    const header = paymentHeader(request);
    if (header === null) {
      next();
      return;
    }
    const read = readPayment(request, header, { ...rules, scope: rules.scope(request) });
    if ("fault" in read) {
      sendProblem(response, problemOf(read.fault));
      return;
    }
    const { waitMs } = rules;
    await guardRequest(
      deps,
      // The chain takes a nonce once, so a payment whose end is not known may be tried again.
      {
        ...{ waitMs, conflict: "payment_id_conflict", endingOf: endingOfPayment },
        runUnknownAgain: true,
      },
      { arrival: read.value, response, run: next },
    );
  });
}

function guardKeys(deps: GuardDeps, limits: RequestLimits, own: KeyOptions): Guard {
  const { principal, scope = () => "keyed", required = true, waitMs = 0 } = own;
  checkWait(waitMs);
  const runUnknownAgain = own.runUnknownAgain ?? false;
  return handingOver(async (request, response, next) => {
    if (!KEYED_METHODS.has(request.method ?? "")) {
      next();
      return;
    }
    // Hashed: callers are often told apart by what must not lie in a table.
    const names = { scope: scope(request), principal: sha256(principal(request)) };
    const read = readKey(request, { ...limits, ...names, required });
    if ("fault" in read) {
      sendProblem(response, problemOf(read.fault));
    } else if (read.value === null) {
      next();
    } else {
      await guardRequest(
        deps,
        { waitMs, conflict: "key_conflict", endingOf: endingOfKeyed, runUnknownAgain },
        { arrival: read.value, response, run: next },
      );
    }
  });
}

/** Faults go on to the application's own handler; Express 4 would leave them to the process. */
function handingOver(guard: Guard): Guard {
  return async (request, response, next) => {
    try {
      await guard(request, response, next);
    } catch (error) {
      next(error);
    }
  };
}

function purgeNowAndThen(
  deps: Parameters<typeof purgeRows>[0],
  onFault: GuardDeps["onFault"],
): () => void {
  let last = performance.now();
  return () => {
    const now = performance.now();
    if (now - last < PURGE_EVERY_MS) return;
    last = now;
    purgeRows(deps).catch(onFault);
  };
}
