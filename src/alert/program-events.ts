/** What programs are sent: README.md, "Other ways out". The shapes are part of the contract. */
import type { Incident } from "../core/incident.ts";
import type { Digest } from "./digest.ts";
import { digestDocument } from "./digest.ts";
import type { Document } from "./document.ts";
import { toPlainText } from "./document.ts";
import { CODE_TITLES } from "./message.ts";
import type { Payload } from "./payload.ts";
import type { PagerAction } from "./program-route.ts";
import { clean, clip } from "./text.ts";

/** An incident in its outside shape, as `incidents list --json` prints it. */
export type PresentedIncident = object;

/** What an event of an incident says. */
export interface IncidentEvent {
  readonly incident: Incident;
  readonly presented: PresentedIncident;
  /** The incident's page; `null`: `PUBLIC_URL` is not set. */
  readonly url: string | null;
  readonly at: Date;
}

// PagerDuty's limit of a summary. An event may have 512 KB; the lists are cut long before.
const SUMMARY_CHARS_MAX = 1_024;
const FIELD_CHARS_MAX = 255;
const LISTED_MAX = 20;
const CLIENT = "tallyd";

type Body = Readonly<Record<string, unknown>>;

/** The webhook's message about one step of an incident's life. */
export function webhookPayload(
  about: IncidentEvent,
  step: {
    readonly word: string;
    readonly actor: string;
    readonly note: string | null;
    readonly changes: readonly string[];
  },
): Payload {
  const { actor, note, changes } = step;
  const type = `incident.${step.word}`;
  const data = { incident: about.presented, changes, note, actor, url: about.url };
  return {
    text: `${type}: ${headline(about.incident)}`,
    blocks: [],
    event: { type, timestamp: about.at.toISOString(), data },
  };
}

/** The webhook's message about many incidents at once. */
export function webhookDigest(digest: Digest, at: Date): Payload {
  return {
    text: toPlainText(digestDocument(digest)),
    blocks: [],
    event: { type: "incidents.digest", timestamp: at.toISOString(), data: digestBody(digest) },
  };
}

/** The webhook's daily digest; `data` is what the words of `document` are made of. */
export function webhookDay(document: Document, data: Body, at: Date): Payload {
  const event = { type: "digest.daily", timestamp: at.toISOString(), data };
  return { text: toPlainText(document), blocks: [], event };
}

/** PagerDuty's message about one incident; its dedup key is the incident's id. */
export function pagerPayload(about: IncidentEvent, action: PagerAction): Payload {
  const { incident, url } = about;
  const text = `${action} ${incident.id}: ${headline(incident)}`;
  const head = { event_action: action, dedup_key: incident.id };
  if (action !== "trigger") return { text, blocks: [], event: head };
  const links = url === null ? {} : { client_url: url, links: [{ href: url, text: "incident" }] };
  const payload = {
    summary: clip(headline(incident), SUMMARY_CHARS_MAX),
    source: clip(clean(incident.scope ?? CLIENT), FIELD_CHARS_MAX) || CLIENT,
    severity: "critical",
    timestamp: (incident.occurredAt ?? incident.firstSeen).toISOString(),
    component: incident.rail ?? CLIENT,
    class: incident.code,
    custom_details: detailsOf(incident),
  };
  return { text, blocks: [], event: { ...head, client: CLIENT, ...links, payload } };
}

/** One alert for a storm. A person resolves it: no single incident's end ends it. */
export function pagerDigest(digest: Digest): Payload {
  const text = toPlainText(digestDocument(digest));
  const summary = clip(text.split("\n")[0] ?? text, SUMMARY_CHARS_MAX);
  const payload = {
    ...{ summary, source: CLIENT, severity: "critical", component: CLIENT, class: "storm" },
    custom_details: digestBody(digest),
  };
  return { text, blocks: [], event: { event_action: "trigger", client: CLIENT, payload } };
}

/** `double charge: order-1 was charged 2 times`. */
function headline({ code, summary }: Incident): string {
  return `${CODE_TITLES[code]}: ${clean(summary)}`;
}

function detailsOf(incident: Incident): Body {
  const { id, basis, amountAtRisk, currency, charges, intents, advice } = incident;
  return {
    ...{ id, basis, operation: incident.operationId, currency, advice },
    amountAtRisk: amountAtRisk === null ? null : String(amountAtRisk),
    charges: charges.slice(0, LISTED_MAX),
    intents: intents.slice(0, LISTED_MAX),
    chargeCount: charges.length,
    intentCount: intents.length,
  };
}

function digestBody(digest: Digest): Body {
  const { kind, total, criticals, counts, sums, worst, named } = digest;
  return { kind, total, criticals, counts, sums, incidents: [...worst, ...named] };
}
