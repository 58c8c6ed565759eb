/**
 * What is known about one purchase as text for a terminal: answers first, then its story in time.
 */
import { formatAmount } from "../core/money.ts";
import { visibleLine } from "../core/visible.ts";
import type {
  Explained,
  ExplainedCharge,
  ExplainedCoverage,
  ExplainedIntent,
} from "./explained.ts";

/** The part of an incident that the text shows. */
export interface IncidentLine {
  readonly id: string;
  readonly code: string;
  readonly severity: string;
  readonly status: string;
  readonly firstSeen: string;
  readonly summary: string;
}

interface Moment {
  readonly at: string;
  readonly what: string;
}

// A terminal page; the JSON has all of it.
const MOMENTS_SHOWN_MAX = 100;

/** Renders the explanation; no line end after the last line. */
export function explainText(explained: Explained<IncidentLine>): string {
  return [
    ...headLines(explained),
    ...answerLines(explained),
    "",
    "what happened (UTC):",
    ...storyLines(explained),
    ...openLines(explained.incidents),
    "",
    "what is proven to be read:",
    ...explained.coverage.map((source) => `  ${coverageLine(source)}`),
  ]
    .map(visibleLine)
    .join("\n");
}

function headLines(explained: Explained<IncidentLine>): string[] {
  const { intent, operations } = explained;
  const others = explained.intents
    .filter((row) => row.id !== intent?.id)
    .map((row) => `${row.id} (${row.state})`);
  return [
    intent === null
      ? `${explained.query}: no row of the payments table belongs to it`
      : `${intent.id}  ${intent.state}  ${money(intent.amount, intent.currency)}`,
    `operation: ${operations.join(", ")}`,
    ...(others.length === 0 ? [] : [`rows of the same purchase: ${others.join(", ")}`]),
  ];
}

function answerLines({ contract }: Explained<IncidentLine>): string[] {
  if (contract === null) return [];
  const names = [
    "identity",
    "operation",
    "binding",
    "admission",
    "retention",
    "uncertainty",
  ] as const;
  return ["", ...names.map((name) => `${`${name}:`.padEnd(13)}${contract[name].answer}`)];
}

function storyLines(explained: Explained<IncidentLine>): string[] {
  const moments: Moment[] = [
    ...explained.intents.flatMap(rowMoments),
    ...explained.charges.map((charge) => ({ at: charge.createdAt, what: chargeText(charge) })),
    ...explained.paymentIntents
      .filter((payment) => payment.status !== "succeeded")
      .map((payment) => ({
        at: payment.createdAt,
        what: `payment intent ${payment.id} was made and is ${payment.status} now`,
      })),
    ...explained.refunds.map((refund) => ({
      at: refund.createdAt,
      what:
        `refund ${refund.id} of ${money(refund.amount, refund.currency)} ` +
        `from ${refund.charge ?? refund.paymentIntent ?? "?"}: ${refund.status}`,
    })),
    ...explained.disputes.map((dispute) => ({
      at: dispute.createdAt,
      what:
        `dispute ${dispute.id} of ${money(dispute.amount, dispute.currency)} ` +
        `on ${dispute.charge ?? "?"}: ${dispute.status} (${dispute.reason ?? "no reason"})`,
    })),
    ...explained.events.map((event) => ({
      at: event.createdAt,
      what: event.type.startsWith("chain.")
        ? `${event.type} ${event.object ?? ""} in ${event.via}, ${event.status}`
        : `event ${event.type} ${event.object ?? ""} came by ${event.via}`,
    })),
    ...explained.resolutions.map((one) => ({
      at: one.decidedAt,
      what: `resolver on ${one.intent}: ${one.decision} (${one.outcome}), ${one.reason}`,
    })),
    ...explained.incidents.map((one) => ({
      at: one.firstSeen,
      what: `incident ${one.code} ${one.id} (${one.severity}): ${one.summary}`,
    })),
  ];
  const sorted = moments.toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
  const left = sorted.length - MOMENTS_SHOWN_MAX;
  return [
    ...(left > 0 ? [`  … ${String(left)} earlier moments: see --json`] : []),
    ...sorted.slice(-MOMENTS_SHOWN_MAX).map(({ at, what }) => `  ${clock(at)}  ${what}`),
  ];
}

function rowMoments(row: ExplainedIntent): Moment[] {
  const key = row.idempotencyKey === null ? "without a key" : `with key ${row.idempotencyKey}`;
  const made = { at: row.createdAt, what: `row ${row.id} was made ${key}` };
  const names = row.chargeId === null ? "" : `, it names ${row.chargeId}`;
  const touched = { at: row.updatedAt, what: `row ${row.id} is ${row.state} since${names}` };
  return [made, touched];
}

function chargeText(charge: ExplainedCharge): string {
  const parts = [
    `charge ${charge.id} of ${money(charge.amount, charge.currency)} ${charge.status}`,
    charge.status === "succeeded" && !charge.captured ? "not captured" : "",
    charge.amountReturned === "0"
      ? ""
      : `${money(charge.amountReturned, charge.currency)} of it went back`,
    charge.mirrored ? "the connected account's copy of a platform charge" : "",
    charge.intent === null
      ? "no row is its own"
      : `belongs to ${charge.intent} by its ${basisWord(charge.basis)}`,
  ];
  return parts.filter((part) => part !== "").join(", ");
}

function basisWord(basis: string | null): string {
  return basis === null ? "mark" : basis.replace("_", " ");
}

function openLines(incidents: readonly IncidentLine[]): string[] {
  const open = incidents.filter((one) => one.status !== "closed");
  if (open.length === 0) return ["", "nothing is open about it"];
  return ["", "open:", ...open.map((one) => `  ${one.code} ${one.id} is ${one.status}`)];
}

function coverageLine(source: ExplainedCoverage): string {
  const last = source.ranges.at(-1);
  const range = last === undefined ? "nothing yet" : `${clock(last.from)} to ${clock(last.to)}`;
  const own =
    source.coversIntent === null
      ? ""
      : source.coversIntent
        ? ", the row's own time is in it"
        : ", the row's own time is not";
  const failing =
    source.failingSince === null ? "" : `, failing since ${clock(source.failingSince)}`;
  return `${source.source} ${source.scope}: ${range}${own}${failing}`;
}

function money(minor: string, currency: string): string {
  return formatAmount(BigInt(minor), currency);
}

function clock(iso: string): string {
  return iso.slice(0, 19).replace("T", " ");
}
