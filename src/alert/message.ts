/** What people read about one incident: what happened, how much, since when, what to do. */
import type { Code } from "../core/finding.ts";
import type { Incident, Step } from "../core/incident.ts";
import { formatAmount } from "../core/money.ts";
import { BUTTON_ACTIONS, actionsBlock } from "./buttons.ts";
import type { Document, Part } from "./document.ts";
import { clean, clip } from "./text.ts";

/** Which word of an incident's life is told. */
export type Word = "opened" | "worsened" | "reopened" | "unmuted" | "closed" | "corrected";

export const CODE_TITLES: Readonly<Record<Code, string>> = {
  double_charge: "double charge",
  orphan_charge: "charge without a row",
  duplicate_charge_id: "one charge on several rows",
  fingerprint_conflict: "same key, different payment",
  stuck_in_flight: "payment stuck in flight",
  stuck_reconciling: "payment cannot be reconciled",
  state_drift: "row and provider disagree",
  amount_mismatch: "amounts disagree",
  retry_horizon_exceeded: "retry would charge again",
  key_reuse: "idempotency key used twice",
  authorization_reuse: "authorization used twice",
  refund_drift: "refund went wrong",
  dispute_opened: "dispute opened",
  spend_cap_exceeded: "spend cap exceeded",
  coverage_gap: "tallyd cannot see",
  config_error: "configuration fault",
};

// Enough to recognise the trouble on a phone; `tallyd incidents show` has them all.
const IDS_MAX = 10;
const EVIDENCE_MAX = 6;
const EVIDENCE_CHARS_MAX = 120;
const ID_CHARS_MAX = 120;

/** The message of one step of an incident's life. `publicUrl` `null`: commands only, no link. */
export function incidentDocument(
  step: Step,
  word: Word,
  options: { readonly publicUrl: string | null; readonly buttons?: boolean },
): Document {
  const incident = step.after;
  const over = word === "closed" || word === "corrected";
  return {
    title: titleOf(incident, word),
    parts: [...leadOf(step, word), ...bodyOf(incident, { over, ...options })],
  };
}

/** What every message about an incident says of it, below its first words. */
export function bodyOf(
  incident: Incident,
  options: {
    readonly over: boolean;
    readonly publicUrl: string | null;
    /** For people on Slack: may they act with a click? */
    readonly buttons?: boolean;
  },
): readonly Part[] {
  return [
    { kind: "facts", facts: factsOf(incident) },
    ...idList("Charges", incident.charges),
    ...idList("Intents", incident.intents),
    ...(options.over ? [] : nextSteps(incident)),
    { kind: "list", title: "Look further", lines: commandsOf(incident), more: 0 },
    ...linkOf(incident, options.publicUrl),
    ...(options.buttons === true && !options.over ? [buttonsPart(incident)] : []),
  ];
}

/** `Critical: double charge, 12.50 USD at risk`. */
function titleOf(incident: Incident, word: Word): string {
  const trouble = `${CODE_TITLES[incident.code]}${moneyWords(incident)}`;
  switch (word) {
    case "opened":
      return `${capital(incident.severity)}: ${trouble}`;
    case "worsened":
      return `${capital(incident.severity)}, worse than before: ${trouble}`;
    case "reopened":
      return `${capital(incident.severity)}, back again: ${trouble}`;
    case "unmuted":
      return `${capital(incident.severity)}, no longer muted: ${trouble}`;
    case "closed":
      return `Over: ${CODE_TITLES[incident.code]}`;
    case "corrected":
      return `Correction: ${CODE_TITLES[incident.code]} was no trouble`;
  }
}

function capital(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}

/** `, 12.50 USD at risk`; empty when no money is named. */
export function moneyWords(incident: Incident): string {
  const { amountAtRisk, currency } = incident;
  if (amountAtRisk === null || currency === null || amountAtRisk <= 0n) return "";
  return `, ${formatAmount(amountAtRisk, clean(currency))} at risk`;
}

function leadOf(step: Step, word: Word): readonly Part[] {
  const summary: Part = { kind: "text", text: step.after.summary };
  switch (word) {
    case "opened":
      return [summary];
    case "worsened":
    case "reopened": {
      const lines = [...step.changes.map((change) => change.words), step.note ?? ""];
      const filled = lines.filter((line) => line !== "");
      if (filled.length === 0) return [summary];
      return [{ kind: "list", title: "What changed", lines: filled, more: 0 }, summary];
    }
    case "unmuted":
      return [{ kind: "text", text: "The mute has run out and it is still there:" }, summary];
    case "closed":
      return [{ kind: "text", text: "The facts no longer show it. It was:" }, summary];
    case "corrected":
      return [
        { kind: "text", text: `${step.note ?? "It turned out to be no trouble"}.` },
        { kind: "text", text: "The alert before this one was wrong about that. It said:" },
        summary,
      ];
  }
}

function factsOf(incident: Incident): readonly (readonly [string, string])[] {
  const { amountAtRisk, currency, basis, rail, scope, evidence } = incident;
  const gap = evidence["gapSeconds"];
  const money =
    amountAtRisk === null || currency === null ? "" : formatAmount(amountAtRisk, currency);
  const facts: readonly (readonly [string, string])[] = [
    ["Money at risk", money],
    ["Since", minute(incident.occurredAt ?? incident.firstSeen)],
    ["Gap between charges", typeof gap === "number" ? `${String(gap)} s` : ""],
    ["Basis", basis ?? ""],
    ["Where", [rail, scope].filter((word) => word !== null).join(" ")],
    ["Operation", clip(incident.operationId ?? "", ID_CHARS_MAX)],
    ["Incident", `${incident.id} (${incident.code})`],
  ];
  return facts.filter(([, value]) => value !== "");
}

function minute(time: Date): string {
  return `${time.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

function idList(title: string, ids: readonly string[]): readonly Part[] {
  if (ids.length === 0) return [];
  const lines = ids.slice(0, IDS_MAX).map((id) => clip(id, ID_CHARS_MAX));
  return [{ kind: "list", title, lines, more: Math.max(0, ids.length - IDS_MAX) }];
}

function nextSteps(incident: Incident): readonly Part[] {
  const advice: Part = { kind: "text", text: `What to do: ${incident.advice}` };
  const known = new Set(["gapSeconds"]);
  const lines = Object.entries(incident.evidence)
    .filter(([key]) => !known.has(key))
    .flatMap(([key, value]) => {
      const words = scalarWords(value);
      return words === null ? [] : [`${key}: ${clip(words, EVIDENCE_CHARS_MAX)}`];
    });
  if (lines.length === 0) return [advice];
  const more = Math.max(0, lines.length - EVIDENCE_MAX);
  return [advice, { kind: "list", title: "Evidence", lines: lines.slice(0, EVIDENCE_MAX), more }];
}

/** Objects and lists stay out: they are long, and `tallyd incidents show` prints them. */
function scalarWords(value: unknown): string | null {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : null;
}

// An id with other characters is no argument that could be pasted into a shell.
const SHELL_SAFE = /^\w[\w.:-]{0,119}$/;

function commandsOf(incident: Incident): readonly string[] {
  const subject = [...incident.charges, ...incident.intents].find((id) => SHELL_SAFE.test(id));
  const explain = subject === undefined ? [] : [`tallyd explain ${subject}`];
  return [`tallyd incidents show ${incident.id}`, ...explain];
}

function buttonsPart({ id, code, lastSeen }: Incident): Part {
  const about = { id, isDouble: code === "double_charge", seenAt: lastSeen };
  const block = actionsBlock(about, BUTTON_ACTIONS);
  return { kind: "buttons", block };
}

function linkOf(incident: Incident, publicUrl: string | null): readonly Part[] {
  const url = incidentUrl(incident, publicUrl);
  return url === null ? [] : [{ kind: "link", label: "Open the incident", url }];
}

/** The incident's page; `null`: nobody said where the pages are. */
export function incidentUrl(incident: Incident, publicUrl: string | null): string | null {
  if (publicUrl === null) return null;
  const base = publicUrl.endsWith("/") ? publicUrl : `${publicUrl}/`;
  const path = `incidents/${incident.id}`;
  return URL.canParse(path, base) ? new URL(path, base).href : null;
}
