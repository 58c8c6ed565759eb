import type { Clock } from "./clock.ts";
import { strikeEvent } from "./event-rules.ts";
import type { EventRule } from "./event-rules.ts";
import { eventObjectId, renderEvent, renderThinEvent } from "./events.ts";
import { createPoster } from "./post.ts";
import type { EventRecord, Metadata } from "./records.ts";
import { fits } from "./rules.ts";
import type { RuleBook } from "./rules.ts";
import { signatureHeader } from "./sign.ts";
import type { Space } from "./space.ts";
import type { Tracker } from "./tracker.ts";
import type { Settings } from "./world.ts";

/** A registered receiver of webhooks. */
export interface Endpoint {
  readonly id: string;
  readonly created: number;
  url: string;
  /** Two or more while a secret is being rolled. */
  secrets: readonly string[];
  /** Event types, `*` as wildcard. */
  enabledEvents: readonly string[];
  /** The version its events are rendered in; null follows the account. */
  apiVersion: string | null;
  payload: "snapshot" | "thin";
  /** Whether it gets the events of connected accounts instead of the platform's. */
  connect: boolean;
  livemode: boolean;
  status: "enabled" | "disabled";
  description: string | null;
  metadata: Metadata;
}

/** One attempt to deliver; `status` 0 when the receiver gave no answer. `at` is sandbox ms. */
export interface DeliveryAttempt {
  readonly eventId: string;
  readonly type: string;
  readonly endpointId: string;
  readonly attempt: number;
  readonly at: number;
  readonly status: number;
  readonly error: string | null;
}

/** Attempts at most per event and endpoint, whatever the schedule says; Stripe stops too. */
const ATTEMPTS_MAX = 20;
/** Deliveries running at once; the rest waits in order, as a burst does at Stripe. */
const RUNNING_MAX = 64;
/** Attempts remembered for tests. */
const LOG_MAX = 50_000;

interface Job {
  readonly event: EventRecord;
  readonly endpoint: Endpoint;
  readonly rules: readonly EventRule[];
  attempt: number;
}

/** The order in which held deliveries are let go. */
export type ReleaseOrder = "fifo" | "reverse" | readonly string[];

/** What the deliverer works with. */
export interface DelivererParts {
  readonly clock: Clock;
  readonly tracker: Tracker;
  readonly endpoints: ReadonlyMap<string, Endpoint>;
  readonly eventRules: RuleBook<EventRule>;
  readonly settings: Settings;
}

function wants(endpoint: Endpoint, space: Space, type: string): boolean {
  return (
    endpoint.status === "enabled" &&
    endpoint.livemode === space.livemode &&
    endpoint.connect === !space.isPlatform &&
    endpoint.enabledEvents.some((pattern) => fits(pattern, type) || fits(pattern, `v1.${type}`))
  );
}

function bodyFor(job: Job): string {
  const { event, endpoint } = job;
  if (endpoint.payload === "thin") return JSON.stringify(renderThinEvent(event));
  return JSON.stringify(renderEvent(event, endpoint.apiVersion ?? event.api_version));
}

function headersFor(job: Job, body: string, seconds: number): Record<string, string> {
  const skew = job.rules.find((rule) => rule.action === "skew")?.skewSeconds ?? 0;
  const forged = job.rules.some((rule) => rule.action === "bad_signature");
  const secrets = forged ? ["whsec_nobody_has_this_one"] : job.endpoint.secrets;
  return {
    "content-type": "application/json; charset=utf-8",
    "user-agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
    "stripe-signature": signatureHeader(body, secrets, seconds + skew),
  };
}

/** Delivers events to endpoints: first attempts, retries, and what is held back. */
export class Deliverer {
  readonly #parts: DelivererParts;
  readonly #poster = createPoster();
  #waiting: Job[] = [];
  #held: Job[] = [];
  #log: DeliveryAttempt[] = [];
  #running = 0;

  constructor(parts: DelivererParts) {
    this.#parts = parts;
  }

  /** Delivers a new event to every endpoint that wants it. */
  announce(space: Space, event: EventRecord): void {
    const takers = [...this.#parts.endpoints.values()].filter((e) => wants(e, space, event.type));
    if (takers.length > 0) event.pending = takers.map((endpoint) => endpoint.id);
    for (const endpoint of takers) {
      const rules = strikeEvent(this.#parts.eventRules, {
        type: event.type,
        objectId: eventObjectId(event),
        eventId: event.id,
        endpointId: endpoint.id,
      });
      this.#start({ event, endpoint, rules, attempt: 0 });
    }
  }

  /** Delivers an event again, as "resend" in the Dashboard does; rules do not apply. */
  resend(event: EventRecord): void {
    for (const endpoint of this.#parts.endpoints.values()) {
      if (endpoint.connect !== (event.account !== null)) continue;
      if (endpoint.livemode !== event.livemode || endpoint.status !== "enabled") continue;
      this.#enqueue({ event, endpoint, rules: [], attempt: 0 });
    }
  }

  /** Ids of the events that are held. */
  held(): readonly string[] {
    return this.#held.map((job) => job.event.id);
  }

  /** Lets held deliveries go in an order; a list of event ids lets go only of those. */
  release(order: ReleaseOrder): void {
    const jobs = typeof order === "string" ? this.#held : ordered(this.#held, order);
    this.#held = this.#held.filter((job) => !jobs.includes(job));
    for (const job of order === "reverse" ? jobs.toReversed() : jobs) this.#enqueue(job);
  }

  /** The attempts so far, oldest first. */
  log(): readonly DeliveryAttempt[] {
    return this.#log.slice(-LOG_MAX);
  }

  /** Gives up what still waits and closes the connections. */
  close(): void {
    for (const job of this.#waiting.splice(0)) {
      this.#parts.tracker.end();
      this.#note(job, 0, "the sandbox closed");
    }
    this.#poster.close();
  }

  #start(job: Job): void {
    const rule = (action: EventRule["action"]): EventRule | undefined =>
      job.rules.find((other) => other.action === action);
    if (rule("drop") !== undefined) return;
    if (rule("lose") !== undefined) {
      settle(job);
      return;
    }
    if (rule("hold") !== undefined) {
      this.#held.push(job);
      return;
    }
    const repeat = rule("repeat");
    const copies = repeat === undefined ? 1 : 1 + (repeat.copies ?? 1);
    const delay = rule("delay")?.delayMs;
    for (let copy = 0; copy < copies; copy += 1) {
      const one: Job = { ...job };
      if (delay === undefined) this.#enqueue(one);
      else {
        this.#parts.tracker.later(delay, () => {
          this.#enqueue(one);
        });
      }
    }
  }

  #enqueue(job: Job): void {
    this.#parts.tracker.begin();
    this.#waiting.push(job);
    this.#pump();
  }

  #pump(): void {
    while (this.#running < RUNNING_MAX) {
      const job = this.#waiting.shift();
      if (job === undefined) return;
      this.#running += 1;
      void this.#attempt(job)
        .catch((error: unknown) => {
          this.#note(job, 0, String(error));
        })
        .finally(() => {
          this.#running -= 1;
          this.#parts.tracker.end();
          this.#pump();
        });
    }
  }

  async #attempt(job: Job): Promise<void> {
    const { clock, settings, endpoints, tracker } = this.#parts;
    job.attempt += 1;
    const body = bodyFor(job);
    const headers = headersFor(job, body, clock.seconds());
    const answer = await this.#poster.post(
      job.endpoint.url,
      body,
      headers,
      settings.deliveryTimeoutMs,
    );
    this.#note(job, answer.status, answer.error);
    // Only 2xx is an acknowledgement; a redirect counts as a failure (Stripe, webhooks guide).
    if (answer.status >= 200 && answer.status < 300) {
      settle(job);
      return;
    }
    const wait = settings.retryScheduleMs[job.attempt - 1];
    const wanted = endpoints.get(job.endpoint.id)?.status === "enabled";
    if (wait === undefined || !wanted || job.attempt >= ATTEMPTS_MAX) return;
    tracker.later(wait, () => {
      this.#enqueue(job);
    });
  }

  #note(job: Job, status: number, error: string | null): void {
    this.#log.push({
      eventId: job.event.id,
      type: job.event.type,
      endpointId: job.endpoint.id,
      attempt: job.attempt,
      at: this.#parts.clock.now(),
      status,
      error,
    });
    if (this.#log.length > 2 * LOG_MAX) this.#log = this.#log.slice(-LOG_MAX);
  }
}

/** The endpoint has the event. */
function settle(job: Job): void {
  job.event.pending = job.event.pending.filter((id) => id !== job.endpoint.id);
}

function ordered(held: readonly Job[], ids: readonly string[]): Job[] {
  return ids.flatMap((id) => held.filter((job) => job.event.id === id));
}
