import type { Wire } from "./records.ts";
import { fits, RuleBook } from "./rules.ts";
import type { Countdown } from "./rules.ts";

/**
 * What a request can suffer.
 * - `lost_response`: it runs, then the connection is destroyed
 * - `error_before`: 500 (or `status`) without running, nothing saved under the key
 * - `error_after`: it runs, answers 500 (or `status`), and that answer is saved under the key
 * - `rate_limit`: 429 before anything; `reason` sets Stripe-Rate-Limited-Reason
 * - `lock_timeout`: 429 with that code and Stripe-Should-Retry, neither reason nor request id
 * - `delay`: `delayMs` real milliseconds while the request is in progress
 * - `cut_body`: it runs, the answer breaks off in the middle
 * - `respond`: `status`, `headers` and `body` as given, without running
 * - `resource_missing`: 404 as if the object did not exist yet (stale read)
 * - `no_latest_charge`: the intent shows `latest_charge: null` (stale read)
 */
export type FaultKind =
  | "lost_response"
  | "error_before"
  | "error_after"
  | "rate_limit"
  | "lock_timeout"
  | "delay"
  | "cut_body"
  | "respond"
  | "resource_missing"
  | "no_latest_charge";

/** A fault and the requests it strikes. Everything that is left out matches. */
export interface Fault extends Countdown {
  readonly kind: FaultKind;
  readonly method?: string | undefined;
  /** The path without query, such as `/v1/payment_intents/*`. */
  readonly path?: string | RegExp | undefined;
  /** Only requests whose path ends in, or contains as a segment, this id. */
  readonly id?: string | undefined;
  readonly account?: string | undefined;
  readonly status?: number | undefined;
  readonly retryAfter?: string | undefined;
  readonly reason?: string | undefined;
  readonly delayMs?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: Wire | string | undefined;
}

/** What a fault is matched against. */
export interface Target {
  readonly method: string;
  readonly path: string;
  readonly account: string;
}

/** The faults of one sandbox. */
export type FaultBook = RuleBook<Fault>;

/** An empty book. */
export function createFaults(): FaultBook {
  return new RuleBook<Fault>();
}

/** The faults that strike this request, in the order in which they were added. */
export function strike(book: FaultBook, target: Target): readonly Fault[] {
  return book.take(
    (fault) =>
      (fault.method === undefined || fault.method === target.method) &&
      fits(fault.path, target.path) &&
      (fault.id === undefined || target.path.split("/").includes(fault.id)) &&
      (fault.account === undefined || fault.account === target.account),
  );
}

/** The first struck fault of a kind. */
export function faultOf(struck: readonly Fault[], kind: FaultKind): Fault | undefined {
  return struck.find((fault) => fault.kind === kind);
}
