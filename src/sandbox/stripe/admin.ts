import { z } from "zod";
import type { Control } from "./control.ts";
import type { EventRule } from "./event-rules.ts";
import { renderEvent } from "./events.ts";
import type { Reply } from "./exchange.ts";
import type { Fault } from "./faults.ts";
import type { EventRecord } from "./records.ts";
import type { SeedCustomer, SeedDispute, SeedEvent, SeedRefund } from "./seed-aftermath.ts";
import type { SeedCharge, SeedPaymentIntent } from "./seed-payment.ts";

/** A request below `/_sandbox/`, for processes that cannot reach `control` in memory. */
export interface AdminRequest {
  readonly method: string;
  /** The path after the prefix, such as `faults` or `seed/charge`. */
  readonly action: string;
  readonly body: string;
}

/** Most objects one bulk request makes; above it a test should call the sandbox in process. */
const BULK_MAX = 1_000_000;

const FAULT = z.strictObject({
  kind: z.enum([
    "lost_response",
    "error_before",
    "error_after",
    "rate_limit",
    "lock_timeout",
    "delay",
    "cut_body",
    "respond",
    "resource_missing",
    "no_latest_charge",
  ]),
  method: z.string().optional(),
  path: z.string().optional(),
  id: z.string().optional(),
  account: z.string().optional(),
  nth: z.number().optional(),
  count: z.number().optional(),
  status: z.number().optional(),
  retryAfter: z.string().optional(),
  reason: z.string().optional(),
  delayMs: z.number().optional(),
  headers: z.record(z.string(), z.string()).optional(),
  body: z.string().optional(),
});

const EVENT_RULE = z.strictObject({
  action: z.enum([
    "not_generated",
    "unlisted",
    "list_delay",
    "twin",
    "drop",
    "lose",
    "repeat",
    "hold",
    "delay",
    "skew",
    "bad_signature",
  ]),
  type: z.string().optional(),
  objectId: z.string().optional(),
  eventId: z.string().optional(),
  endpointId: z.string().optional(),
  nth: z.number().optional(),
  count: z.number().optional(),
  delayMs: z.number().optional(),
  copies: z.number().optional(),
  skewSeconds: z.number().optional(),
});

const ENDPOINT = z.looseObject({ url: z.string() });
const ADVANCE = z.strictObject({ ms: z.number() });
const NAMED = z.looseObject({ id: z.string() });
const RELEASE = z.strictObject({
  order: z.union([z.enum(["fifo", "reverse"]), z.array(z.string())]).default("fifo"),
});
const SETTLE = z.strictObject({ id: z.string(), outcome: z.enum(["succeeded", "failed"]) });
const CLOSE = z.strictObject({ id: z.string(), won: z.boolean() });
const HIDE = z.strictObject({ id: z.string(), ms: z.number().optional() });
const BULK = z.looseObject({ count: z.number().int().min(1).max(BULK_MAX) });
const KEY = z.strictObject({ key: z.string() });

/** JSON with its amounts as bigint, at any depth below the seeded objects. */
function parseBody(text: string): unknown {
  if (text === "") return {};
  return JSON.parse(text, (name, value: unknown) => {
    const isAmount = name === "amount" || name.startsWith("amount_");
    return isAmount && typeof value === "number" ? BigInt(value) : value;
  });
}

function showRecord(record: object | undefined): unknown {
  return record ?? null;
}

function showEvent(event: EventRecord | undefined): unknown {
  return event === undefined ? null : renderEvent(event);
}

type Action = (control: Control, input: unknown) => unknown;

/** Seeds are taken as they are: whoever seeds decides every field, odd ones too. */
const SEED_ACTIONS: Readonly<Record<string, Action>> = {
  "seed/payment_intent": (c, input) => showRecord(c.seed.paymentIntent(input as SeedPaymentIntent)),
  "seed/charge": (c, input) => showRecord(c.seed.charge(input as SeedCharge)),
  "seed/refund": (c, input) => showRecord(c.seed.refund(input as SeedRefund)),
  "seed/dispute": (c, input) => showRecord(c.seed.dispute(input as SeedDispute)),
  "seed/event": (c, input) => showEvent(c.seed.event(input as SeedEvent)),
  "seed/customer": (c, input) => showRecord(c.seed.customer(input as SeedCustomer)),
  "seed/bulk": (c, input) => {
    const { count, ...seed } = BULK.parse(input);
    c.seed.bulk(count, () => seed);
    return { count };
  },
};

const ACTIONS: Readonly<Record<string, Action>> = {
  ...SEED_ACTIONS,
  faults: (c, input) => {
    c.fault(FAULT.parse(input) satisfies Fault);
    return {};
  },
  "faults/clear": (c) => {
    c.clearFaults();
    return {};
  },
  event_rules: (c, input) => {
    c.eventRule(EVENT_RULE.parse(input) satisfies EventRule);
    return {};
  },
  "event_rules/clear": (c) => {
    c.clearEventRules();
    return {};
  },
  endpoints: (c, input) => c.addEndpoint(ENDPOINT.parse(input)),
  "endpoints/roll": (c, input) => ({ secret: c.rollSecret(NAMED.parse(input).id) }),
  "endpoints/remove": (c, input) => {
    c.removeEndpoint(NAMED.parse(input).id);
    return {};
  },
  advance: (c, input) => {
    c.advance(ADVANCE.parse(input).ms);
    return { now: c.now() };
  },
  settings: (c, input) => Object.assign(c.settings, input),
  deliver: (c, input) => {
    c.deliver(NAMED.parse(input).id);
    return {};
  },
  release: (c, input) => {
    c.release(RELEASE.parse(input).order);
    return {};
  },
  hide: (c, input) => {
    const { id, ms } = HIDE.parse(input);
    c.hide(id, ms);
    return {};
  },
  "refunds/fail": (c, input) => showRecord(c.fail(NAMED.parse(input).id)),
  "refunds/settle": (c, input) => showRecord(c.settleRefund(NAMED.parse(input).id)),
  "intents/settle": (c, input) => {
    const { id, outcome } = SETTLE.parse(input);
    c.settle(id, outcome);
    return {};
  },
  "charges/dispute": (c, input) => {
    const { id, ...order } = NAMED.parse(input);
    return showRecord(c.dispute(id, order));
  },
  "disputes/close": (c, input) => {
    const { id, won } = CLOSE.parse(input);
    return showRecord(c.closeDispute(id, won));
  },
  "keys/revoke": (c, input) => {
    c.revokeKey(KEY.parse(input).key);
    return {};
  },
  "keys/restore": (c, input) => {
    c.restoreKey(KEY.parse(input).key);
    return {};
  },
  idle: async (c) => {
    await c.idle();
    return {};
  },
};

const VIEWS: Readonly<Record<string, (control: Control) => unknown>> = {
  requests: (c) => c.requests,
  counts: (c) => c.counts,
  deliveries: (c) => c.deliveries(),
  held: (c) => c.held(),
  events: (c) => c.events().map((event) => renderEvent(event)),
};

function json(status: number, value: unknown): Reply {
  const body = JSON.stringify(value, (_, item: unknown) =>
    typeof item === "bigint" ? Number(item) : item,
  );
  return { status, body, headers: {} };
}

/** Answers a steering request: 200 with JSON, 400 when it makes no sense, 404 for no action. */
export async function answerAdmin(control: Control, request: AdminRequest): Promise<Reply> {
  const view = request.method === "GET" ? VIEWS[request.action] : undefined;
  if (view !== undefined) return json(200, view(control));
  const action = request.method === "POST" ? ACTIONS[request.action] : undefined;
  if (action === undefined) {
    const known = [...Object.keys(VIEWS), ...Object.keys(ACTIONS)];
    return json(404, { error: `no action ${request.action}`, known });
  }
  try {
    return json(200, await action(control, parseBody(request.body)));
  } catch (error) {
    return json(400, { error: String(error) });
  }
}
