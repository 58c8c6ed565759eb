/** Which steps programs are told of: a webhook of every word, PagerDuty of criticals. Pure. */
import type { Severity } from "../core/finding.ts";
import { SEVERITY_RANK } from "../core/finding.ts";
import type { Step } from "../core/incident.ts";
import type { DigestItem } from "./digest.ts";
import { digestItem } from "./digest.ts";
import type { Word } from "./message.ts";
import type { ToldLately } from "./route.ts";
import { SINGLES_PER_MINUTE_MAX, SINGLES_PER_RUN_MAX, isOver, wordToTell } from "./route.ts";

/** Ways out at whose other end a program listens. */
export const PROGRAM_CHANNELS = ["webhook", "pagerduty"] as const;
export type ProgramChannel = (typeof PROGRAM_CHANNELS)[number];

/** What PagerDuty is asked to do with the alert of an incident. */
export type PagerAction = "trigger" | "acknowledge" | "resolve";

export interface ProgramInput {
  readonly steps: readonly Step[];
  readonly ways: Readonly<Record<ProgramChannel, boolean>>;
  readonly flips: ToldLately["flips"];
  /** Channel -> messages about single incidents made within `CAP_WINDOW_MS`. */
  readonly singles: ReadonlyMap<string, number>;
  /** Incident id -> the word that the webhook was told last; missing: none, or in a digest. */
  readonly said: ReadonlyMap<string, string>;
  /** Incident id -> what PagerDuty was asked last; missing: nothing. */
  readonly paged: ReadonlyMap<string, PagerAction>;
}

export type ProgramTell =
  | { readonly channel: "webhook"; readonly word: Word; readonly step: Step }
  | { readonly channel: "pagerduty"; readonly action: PagerAction; readonly step: Step }
  | {
      readonly channel: ProgramChannel;
      readonly digest: "storm" | "over" | "reminders";
      readonly severity: Severity;
      readonly items: readonly DigestItem[];
    };

/** Decides what programs are told of one run. */
export function routePrograms(input: ProgramInput): readonly ProgramTell[] {
  return [...webhookTells(input), ...pagerTells(input)];
}

function webhookTells(input: ProgramInput): readonly ProgramTell[] {
  if (!input.ways.webhook) return [];
  const told = input.steps.flatMap((step) => {
    const word = webhookWord(step, input.said.get(step.after.id));
    return word === null || isAbout(step, "webhook") ? [] : [{ step, word }];
  });
  const room = roomOf(input.singles, "webhook");
  const news = told.filter(({ word }) => !isOver(word));
  const over = told.filter(({ word }) => isOver(word));
  const single = ({ step, word }: (typeof told)[number]): ProgramTell => {
    return { channel: "webhook", word, step };
  };
  return [
    ...(news.length <= room ? news.map(single) : [digestTell("webhook", "storm", news)]),
    ...(over.length <= room - Math.min(news.length, room)
      ? over.map(single)
      : [digestTell("webhook", "over", over)]),
  ];
}

/**
 * People are spared what goes on and off; a program that keeps a list of what is open must hear of
 * each end, and of each return.
 */
function webhookWord({ kind, before, after }: Step, last: string | undefined): Word | null {
  const isNews = after.status === "open" && after.severity !== "info";
  switch (kind) {
    case "opened":
    case "reopened":
      return isNews ? kind : null;
    case "continued":
      return isNews && last === undefined ? "opened" : null;
    case "worsened":
      return after.severity === "info" ? null : "worsened";
    case "closed":
    case "absorbed": {
      const isKnown = last === undefined ? (before?.told ?? null) !== null : !OVER.has(last);
      return isKnown ? "closed" : null;
    }
    case "corrected":
      return "corrected";
    case "unmuted":
      return isNews ? "unmuted" : null;
    case "refreshed":
    case "eased":
      return null;
  }
}

const OVER: ReadonlySet<string> = new Set(["closed", "corrected"] satisfies Word[]);

function pagerTells(input: ProgramInput): readonly ProgramTell[] {
  if (!input.ways.pagerduty) return [];
  const news = input.steps.flatMap((step) => {
    const word = pagerWord(input, step);
    return word === null || isAbout(step, "pagerduty") ? [] : [{ step, word }];
  });
  // An alert that was triggered is resolved whatever the rate: it would page for ever.
  const over = input.steps.filter(({ after }) => {
    return after.status === "closed" && isPaged(input.paged.get(after.id));
  });
  return [
    ...(news.length <= roomOf(input.singles, "pagerduty")
      ? news.map(({ step }): ProgramTell => ({ channel: "pagerduty", action: "trigger", step }))
      : [digestTell("pagerduty", "storm", news)]),
    ...over.map((step): ProgramTell => ({ channel: "pagerduty", action: "resolve", step })),
  ];
}

/** The word for which somebody is paged. */
function pagerWord(input: ProgramInput, step: Step): Word | null {
  const { after } = step;
  if (after.severity !== "critical" || after.status !== "open") return null;
  // The incident that it takes over from is resolved in the same run.
  if (step.kind === "continued") return "opened";
  const word = wordToTell({ flips: input.flips }, step);
  return word === null || isOver(word) ? null : word;
}

/** Was an alert made that nobody has resolved? */
export function isPaged(last: PagerAction | undefined): boolean {
  return last === "trigger" || last === "acknowledge";
}

// What is wrong with a way out cannot be told through it.
function isAbout({ after }: Step, channel: ProgramChannel): boolean {
  return after.operationId === null && after.evidence["channel"] === channel;
}

/** How many messages about single incidents may still be made for a channel. */
export function roomOf(singles: ProgramInput["singles"], channel: ProgramChannel): number {
  const spent = singles.get(channel) ?? 0;
  return Math.max(0, Math.min(SINGLES_PER_RUN_MAX, SINGLES_PER_MINUTE_MAX - spent));
}

function digestTell(
  channel: ProgramChannel,
  digest: "storm" | "over",
  members: readonly { readonly step: Step; readonly word: Word }[],
): ProgramTell {
  const severity = members.reduce<Severity>(
    (worst, { step: { after } }) =>
      SEVERITY_RANK[after.severity] > SEVERITY_RANK[worst] ? after.severity : worst,
    "info",
  );
  const items = members.map(({ step, word }) =>
    digestItem(step.after, { first: word === "opened", over: isOver(word) }),
  );
  return { channel, digest, severity, items };
}
