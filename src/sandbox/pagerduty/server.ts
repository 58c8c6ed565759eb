import { startReceiver } from "../receiver.ts";
import type { ReceivedRequest, Receiver, ReceiverAnswer } from "../receiver.ts";

/** An alert as PagerDuty would show it. */
export interface PagerAlert {
  readonly dedupKey: string;
  status: "triggered" | "acknowledged" | "resolved";
  /** Events about it that were accepted, the repeats too. */
  events: number;
  summary: string;
}

/** A stand-in for the Events API v2. */
export interface PagerDutySandbox extends Receiver {
  /** Keys of its services; others get 400. */
  readonly routingKeys: Set<string>;
  readonly alerts: ReadonlyMap<string, PagerAlert>;
  readonly clear: () => void;
}

type Thing = Readonly<Record<string, unknown>>;

const SUMMARY_CHARS_MAX = 1_024;
const DEDUP_CHARS_MAX = 255;
const SEVERITIES = ["critical", "error", "warning", "info"];
const ACTIONS = ["trigger", "acknowledge", "resolve"];

/** Starts it on a free port with one service. */
export async function startPagerDutySandbox(routingKey: string): Promise<PagerDutySandbox> {
  const alerts = new Map<string, PagerAlert>();
  const routingKeys = new Set([routingKey]);
  const receiver = await startReceiver((request) => answer(request, routingKeys, alerts));
  return {
    ...receiver,
    routingKeys,
    alerts,
    clear: () => {
      alerts.clear();
    },
  };
}

function answer(
  { method, path, body }: Omit<ReceivedRequest, "status">,
  keys: ReadonlySet<string>,
  alerts: Map<string, PagerAlert>,
): ReceiverAnswer {
  if (method !== "POST" || path !== "/v2/enqueue") return { status: 404, body: "" };
  const event = parsed(body);
  if (event === null) return invalid("JSON is invalid");
  const fault = keyFault(event, keys) ?? eventFault(event);
  if (fault !== null) return invalid(fault);
  const dedupKey = typeof event["dedup_key"] === "string" ? event["dedup_key"] : "made up";
  apply(event, dedupKey, alerts);
  const accepted = { status: "success", message: "Event processed", dedup_key: dedupKey };
  return { status: 202, body: JSON.stringify(accepted) };
}

function invalid(error: string): ReceiverAnswer {
  const body = { status: "invalid event", message: "Event object is invalid", errors: [error] };
  return { status: 400, body: JSON.stringify(body) };
}

function keyFault({ routing_key: key }: Thing, keys: ReadonlySet<string>): string | null {
  if (typeof key !== "string" || key.length !== 32) {
    return "Length of 'routing_key' is incorrect (should be 32 characters)";
  }
  return keys.has(key) ? null : "'routing_key' is not a valid integration key";
}

function eventFault(event: Thing): string | null {
  const { event_action: action, dedup_key: dedup, payload } = event;
  if (typeof action !== "string" || !ACTIONS.includes(action)) return "'event_action' is invalid";
  const length = typeof dedup === "string" ? dedup.length : 0;
  if (length > DEDUP_CHARS_MAX) return "'dedup_key' is too long";
  if (action !== "trigger") return length === 0 ? "'dedup_key' is missing or blank" : null;
  if (!isThing(payload)) return "'payload' is missing or blank";
  const { summary, source, severity } = payload;
  if (typeof summary !== "string" || summary === "") return "'payload.summary' is missing or blank";
  if (summary.length > SUMMARY_CHARS_MAX) return "'payload.summary' is too long";
  if (typeof source !== "string" || source === "") return "'payload.source' is missing or blank";
  if (typeof severity !== "string" || !SEVERITIES.includes(severity)) {
    return "'payload.severity' is invalid";
  }
  return null;
}

/** An acknowledgement or an end of an alert that is not open changes nothing. */
function apply(event: Thing, dedupKey: string, alerts: Map<string, PagerAlert>): void {
  const known = alerts.get(dedupKey);
  const open = known !== undefined && known.status !== "resolved" ? known : null;
  if (event["event_action"] !== "trigger") {
    if (open === null) return;
    open.events += 1;
    open.status = event["event_action"] === "resolve" ? "resolved" : "acknowledged";
    return;
  }
  const payload = event["payload"];
  const summary = isThing(payload) ? String(payload["summary"]) : "";
  if (open === null) alerts.set(dedupKey, { dedupKey, status: "triggered", events: 1, summary });
  else open.events += 1;
}

function parsed(body: string): Thing | null {
  try {
    const value: unknown = JSON.parse(body);
    return isThing(value) ? value : null;
  } catch {
    return null;
  }
}

function isThing(value: unknown): value is Thing {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
