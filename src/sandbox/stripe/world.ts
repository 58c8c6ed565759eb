import type { Clock } from "./clock.ts";
import type { Deliverer, Endpoint } from "./deliver.ts";
import type { EventRule } from "./event-rules.ts";
import type { FaultBook } from "./faults.ts";
import type { IdempotencyKeys } from "./idempotency.ts";
import type { IdSource } from "./ids.ts";
import type { Journal } from "./journal.ts";
import type { RuleBook } from "./rules.ts";
import { createSpace } from "./space.ts";
import type { Space } from "./space.ts";
import type { Tracker } from "./tracker.ts";

/** What a test may change while the sandbox runs. Real milliseconds unless said otherwise. */
export interface Settings {
  /** Sandbox milliseconds until a new or changed object is seen by search. */
  searchLagMs: number;
  /** Until an asynchronous capture has its balance transaction and sends `charge.updated`. */
  asyncCaptureMs: number;
  /** Waits between the attempts to deliver a webhook. */
  retryScheduleMs: readonly number[];
  /** How long a receiver may take to answer. */
  deliveryTimeoutMs: number;
}

/** Everything that one sandbox consists of. */
export interface World {
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly tracker: Tracker;
  readonly journal: Journal;
  readonly faults: FaultBook;
  readonly eventRules: RuleBook<EventRule>;
  readonly keys: IdempotencyKeys;
  readonly settings: Settings;
  /** The platform account's id, and the version of its events and of calls without a header. */
  readonly platform: string;
  readonly apiVersion: string;
  /** Connected accounts that exist; null lets every name be one. */
  readonly accounts: ReadonlySet<string> | null;
  readonly revoked: Set<string>;
  readonly spaces: Map<string, Space>;
  readonly endpoints: Map<string, Endpoint>;
  readonly deliverer: Deliverer;
}

/** The name space of an account and mode, made when first used. */
export function spaceOf(world: World, account: string, livemode: boolean): Space {
  const key = `${account} ${livemode ? "live" : "test"}`;
  const existing = world.spaces.get(key);
  if (existing !== undefined) return existing;
  const made = createSpace(account, livemode, account === world.platform);
  world.spaces.set(key, made);
  return made;
}
