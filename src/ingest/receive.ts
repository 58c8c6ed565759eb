/**
 * Receiving: check the signature over the raw bytes, reduce the event to what may be stored, store
 * it, and only then say 200 (invariant 5). Nothing is worked on here, and no web framework
 * is known here.
 */
import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import type { StripeSettings } from "../core/settings.ts";
import { parseExactJson } from "../sources/stripe/parse-json.ts";
import { readEvent } from "../sources/stripe/read-event.ts";
import type { EventSettings, ReadEvent } from "../sources/stripe/read-event.ts";
import type { TallyName } from "../store/tallies.ts";
import type { GroupCommit } from "./group-commit.ts";
import { TOLERANCE_SECONDS, checkSignature } from "./signature.ts";
import type { SignatureVerdict } from "./signature.ts";
import type { TallyBuffer } from "./tally-buffer.ts";

/** What receiving needs. */
export interface ReceiveDeps {
  readonly settings: EventSettings & Pick<StripeSettings, "webhookSecrets">;
  readonly commit: Pick<GroupCommit, "store">;
  readonly tallies: Pick<TallyBuffer, "count" | "succeeded">;
  readonly clock: Clock;
  readonly log: Log;
  /** Called after a commit that left something to apply. */
  readonly onStored: () => void;
}

/** A delivery as it came. */
export interface Delivery {
  readonly rawBody: Buffer;
  readonly signatureHeader: string | undefined;
  readonly contentType: string | undefined;
  /** When it came: the signature's time is judged against this and nothing else. */
  readonly receivedAt: Date;
}

/** Why a delivery was refused. */
export interface Refusal {
  readonly error: { readonly code: string; readonly message: string };
}

/** The answer to a delivery. */
export interface Answer {
  readonly status: number;
  readonly body:
    { readonly received: true; readonly stored: "new" | "duplicate" | "ignored" } | Refusal;
}

/** Stripe's events are far below this; what is larger is none. Bytes. */
export const BODY_BYTES_MAX = 1_048_576;

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json(?:\s*;|$)/i;

/** Builds the answer that refuses a request. */
export function refusal(status: number, code: string, message: string): Answer {
  return { status, body: { error: { code, message } } };
}

/** The answer to a body over the limit, whoever noticed it. */
export function refuseOversize(deps: Pick<ReceiveDeps, "tallies">): Answer {
  deps.tallies.count("oversize");
  return refusal(
    413,
    "body_too_large",
    `The body has more than ${String(BODY_BYTES_MAX)} bytes, which is the most that is read.`,
  );
}

/** Receives one delivery. Never throws: what goes wrong is a 503, so that Stripe tries again. */
export async function receive(deps: ReceiveDeps, delivery: Delivery): Promise<Answer> {
  if (!JSON_TYPE.test((delivery.contentType ?? "").trim())) {
    return refusal(
      415,
      "unsupported_content_type",
      `Content-Type "${(delivery.contentType ?? "").slice(0, 100)}" was sent; ` +
        "application/json is read.",
    );
  }
  if (delivery.rawBody.length > BODY_BYTES_MAX) return refuseOversize(deps);
  const unsigned = refuseSignature(deps, delivery);
  if (unsigned !== null) return unsigned;
  let event: unknown;
  try {
    event = parseExactJson(delivery.rawBody.toString("utf8"));
  } catch {
    deps.tallies.count("bad_json");
    return refusal(400, "bad_json", "The body is correctly signed and is not JSON.");
  }
  return storeEvent(deps, event);
}

function refuseSignature(deps: ReceiveDeps, delivery: Delivery): Answer | null {
  const secrets = deps.settings.webhookSecrets;
  if (secrets.length === 0) {
    deps.tallies.count("secret_unset");
    return refusal(
      503,
      "secret_unset",
      "STRIPE_WEBHOOK_SECRET is not set, so no delivery can be checked: " +
        "set it to the endpoint's whsec_… secret.",
    );
  }
  const verdict = checkSignature({
    rawBody: delivery.rawBody,
    header: delivery.signatureHeader,
    secrets,
    receivedAt: delivery.receivedAt,
  });
  if (verdict.kind === "valid") return null;
  const refused = REFUSED[verdict.kind];
  deps.tallies.count(refused.tally, "offsetSeconds" in verdict ? verdict.offsetSeconds : undefined);
  return refusal(400, refused.code, signatureMessage(verdict));
}

const REFUSED: Readonly<
  Record<
    Exclude<SignatureVerdict["kind"], "valid">,
    { readonly tally: TallyName; readonly code: string }
  >
> = {
  missing: { tally: "signature_missing", code: "signature_missing" },
  malformed: { tally: "signature_malformed", code: "signature_malformed" },
  no_match: { tally: "signature_failure", code: "signature_mismatch" },
  stale: { tally: "stale_valid", code: "signature_stale" },
  future: { tally: "stale_valid", code: "signature_future" },
};

function signatureMessage(verdict: Exclude<SignatureVerdict, { readonly kind: "valid" }>): string {
  const limit = `${String(TOLERANCE_SECONDS)} s are allowed`;
  switch (verdict.kind) {
    case "missing":
      return "There is no Stripe-Signature header; only signed deliveries are read.";
    case "malformed":
      return `The Stripe-Signature header has ${verdict.seen}; t=<seconds>,v1=<hex> is allowed.`;
    case "no_match":
      return (
        "No v1 signature fits any configured secret: the secret is another endpoint's, " +
        "or the body was changed on its way."
      );
    case "stale":
      return (
        `The signature is right and ${String(verdict.offsetSeconds)} s old; ${limit}. ` +
        "Is the clock of this machine ahead?"
      );
    case "future":
      return (
        `The signature is right and ${String(-verdict.offsetSeconds)} s in the future; ${limit}. ` +
        "Is the clock of this machine behind?"
      );
  }
}

async function storeEvent(deps: ReceiveDeps, raw: unknown): Promise<Answer> {
  const outcome = readEvent({ event: raw, settings: deps.settings });
  switch (outcome.kind) {
    case "not_an_event":
      deps.tallies.count("not_an_event");
      return refusal(
        400,
        "not_an_event",
        `The body is correctly signed and is no event of Stripe's: ${outcome.seen}.`,
      );
    case "other_mode":
      // Not an error of the sender's: one URL may serve both modes (Stripe's documentation, pitfall
      // 13).
      deps.tallies.count("other_mode");
      return { status: 200, body: { received: true, stored: "ignored" } };
    case "foreign_account":
      deps.tallies.count("foreign_account", outcome.account);
      return { status: 200, body: { received: true, stored: "ignored" } };
    case "event":
      return commitEvent(deps, outcome.event);
  }
}

// Stripe's own word that an event was lost for good (Stripe's documentation).
const EVENT_LOST = "v2.core.health.event_generation_failure.resolved";

async function commitEvent(deps: ReceiveDeps, event: ReadEvent): Promise<Answer> {
  try {
    const stored = await deps.commit.store(event);
    deps.tallies.succeeded();
    if (event.type === EVENT_LOST && stored === "new") deps.tallies.count("event_lost", event.type);
    if (event.body === null) {
      if (event.hopeless === null) deps.tallies.count("event_type_ignored");
      else noteHopeless(deps, event);
      return { status: 200, body: { received: true, stored: "ignored" } };
    }
    deps.onStored();
    return { status: 200, body: { received: true, stored } };
  } catch (error) {
    deps.log.error("an event could not be stored; the sender is told to try again", {
      scope: event.scope,
      event: event.eventId,
      error: String(error),
    });
    return refusal(
      503,
      "not_stored",
      "The event could not be stored; deliver it again later. Nothing of it was kept.",
    );
  }
}

/** It is kept as dead, so that it is seen; redelivering it would change nothing. */
function noteHopeless(deps: ReceiveDeps, event: ReadEvent): void {
  deps.log.error("an event holds an object that can neither be read nor fetched", {
    scope: event.scope,
    event: event.eventId,
    apiVersion: event.apiVersion,
    error: event.hopeless,
  });
}
