/** Which steps are told, where, and how: alone, in a digest, or not at all. Pure. */
import type { Severity } from "../core/finding.ts";
import { SEVERITY_RANK } from "../core/finding.ts";
import type { Incident, Step } from "../core/incident.ts";
import type { DigestItem, DigestKind } from "./digest.ts";
import { digestItem } from "./digest.ts";
import type { Word } from "./message.ts";

export const CHANNELS = ["slack", "slack_critical", "log"] as const;
export type Channel = (typeof CHANNELS)[number];

/** What was told lately. A missing key means: nothing. */
export interface ToldLately {
  /** Incident id -> openings, endings and returns told within `FLAP_WINDOW_MS`. */
  readonly flips: ReadonlyMap<string, number>;
  /** Incident id -> worsenings told within `WORSE_WINDOW_MS`. */
  readonly worsenings: ReadonlyMap<string, number>;
  /** Channel -> single alerts made within `CAP_WINDOW_MS`. */
  readonly singles: ReadonlyMap<string, number>;
}

export interface RouteInput {
  readonly steps: readonly Step[];
  readonly hooks: { readonly slack: boolean; readonly slackCritical: boolean };
  readonly lately: ToldLately;
  /** Subjects of open floods ({@link floodOf}). Left out: none. */
  readonly floods?: ReadonlySet<string>;
}

export type Tell =
  | {
      readonly kind: "single";
      readonly channel: Channel;
      readonly severity: Severity;
      readonly step: Step;
      readonly word: Word;
      /** Worse again within a minute: may wait for, and be replaced by, the next worsening. */
      readonly patient: boolean;
    }
  | {
      readonly kind: "digest";
      readonly channel: Channel;
      readonly severity: Severity;
      readonly digest: DigestKind;
      readonly items: readonly DigestItem[];
    };

/** What an incident's history notes about the telling; `told` is its new value. */
export interface Told {
  readonly how: "single" | "digest";
  readonly told: Severity | null;
}

// More than ten messages of one run are read by nobody; they become one (issue of case B41).
export const SINGLES_PER_RUN_MAX = 10;
// Half of what a Slack hook takes in a minute, so that a storm over many runs never makes a queue.
export const SINGLES_PER_MINUTE_MAX = 30;
export const CAP_WINDOW_MS = 60_000;
// "Flips six times in an hour: two messages" (case B41). A return with worse facts is no flip.
export const FLIPS_TOLD_MAX = 2;
export const FLAP_WINDOW_MS = 3_600_000;
// A burst that grows is told when it is found and twice more at once; then once a minute.
export const WORSENINGS_AT_ONCE_MAX = 2;
export const WORSE_WINDOW_MS = 60_000;

// Words of the same trouble going on and off.
const FLIPS: ReadonlySet<Word> = new Set<Word>(["opened", "worsened", "reopened", "closed"]);

interface Candidate {
  readonly step: Step;
  readonly word: Word;
  readonly severity: Severity;
  readonly channel: Channel;
  /** Told alone when there are few; otherwise it only counts in a summary. */
  readonly alone: boolean;
}

/** Decides what is told. The second value has an entry for each incident that is. */
export function route(input: RouteInput): {
  readonly tells: readonly Tell[];
  readonly told: ReadonlyMap<string, Told>;
} {
  const tells: Tell[] = [];
  const told = new Map<string, Told>();
  const candidates = input.steps.flatMap((step) => candidateOf(input, step));
  for (const channel of CHANNELS) {
    const here = candidates.filter((candidate) => candidate.channel === channel);
    const isFlood = ({ step }: Candidate): boolean =>
      input.floods?.has(floodOf(step.after)) === true;
    const fresh = here.filter((candidate) => !isOver(candidate.word));
    const news = fresh.filter((candidate) => !isFlood(candidate));
    const over = here.filter((candidate) => isOver(candidate.word));
    const spent = input.lately.singles.get(channel) ?? 0;
    const free = Math.min(SINGLES_PER_RUN_MAX, SINGLES_PER_MINUTE_MAX - spent);
    const groups = [
      { kind: "storm", members: news, room: free },
      // The fault that causes them is told; these only add to it.
      { kind: "flood", members: fresh.filter(isFlood), room: -1 },
      { kind: "over", members: over, room: free - Math.min(news.length, free) },
    ] as const;
    for (const group of groups) tellGroup(input, channel, group, tells, told);
  }
  return { tells, told };
}

function tellGroup(
  input: RouteInput,
  channel: Channel,
  group: {
    readonly kind: DigestKind;
    readonly members: readonly Candidate[];
    readonly room: number;
  },
  tells: Tell[],
  told: Map<string, Told>,
): void {
  const { kind, members, room } = group;
  if (members.length === 0) return;
  const alone = members.filter((member) => member.alone);
  if (members.length <= SINGLES_PER_RUN_MAX && alone.length <= room) {
    for (const member of alone) {
      tells.push(single(input, member));
      note(told, member, "single");
    }
    return;
  }
  const severity = members.reduce<Severity>(
    (worst, member) => (rank(member.severity) > rank(worst) ? member.severity : worst),
    "info",
  );
  const items = members.map(({ step, word }) =>
    digestItem(step.after, { first: word === "opened", over: isOver(word) }),
  );
  tells.push({ kind: "digest", channel, severity, digest: kind, items });
  for (const member of members) note(told, member, "digest");
}

function single(input: RouteInput, member: Candidate): Tell {
  const { channel, severity, step, word } = member;
  const worsenings = input.lately.worsenings.get(step.after.id) ?? 0;
  const patient = word === "worsened" && worsenings >= WORSENINGS_AT_ONCE_MAX;
  return { kind: "single", channel, severity, step, word, patient };
}

function note(told: Map<string, Told>, member: Candidate, how: Told["how"]): void {
  const { after } = member.step;
  told.set(after.id, { how, told: isOver(member.word) ? null : after.severity });
}

/** The subject of the flood that an incident would be part of: sql/detectors/config_error_flood. */
export function floodOf({ code, basis, scope, evidence }: Incident): string {
  const factor = code === "amount_mismatch" ? evidence["factor"] : undefined;
  const sign = typeof factor === "string" ? factor : "";
  return ["flood", code, basis ?? "", scope ?? "", sign].join(":");
}

/** Words that end an incident. */
export function isOver(word: Word): boolean {
  return word === "closed" || word === "corrected";
}

function rank(severity: Severity): number {
  return SEVERITY_RANK[severity];
}

/** The word to tell about a step on any way out; `null`: it is quiet, or flaps. */
export function wordToTell(lately: Pick<ToldLately, "flips">, step: Step): Word | null {
  const word = wordOf(step);
  if (word === null) return null;
  // Without worse facts it is the same trouble going on and off. A correction is told always: the
  // last word must not stay wrong.
  const flips = FLIPS.has(word) && step.changes.length === 0;
  return flips && (lately.flips.get(step.after.id) ?? 0) >= FLIPS_TOLD_MAX ? null : word;
}

function candidateOf(input: RouteInput, step: Step): readonly Candidate[] {
  const word = wordToTell(input.lately, step);
  if (word === null) return [];
  const severity = isOver(word) ? (step.before?.told ?? step.after.severity) : step.after.severity;
  const alone = word !== "closed" || severity === "critical";
  return [{ step, word, severity, alone, channel: channelFor(input.hooks, step.after, severity) }];
}

/** The word to tell, or `null`: info and refreshing are quiet, and so is what was never told. */
function wordOf(step: Step): Word | null {
  const { before, after } = step;
  switch (step.kind) {
    case "worsened":
      return after.severity === "info" ? null : "worsened";
    case "opened":
    case "reopened":
      return isNews(after) ? step.kind : null;
    case "continued":
      return isNews(after) && after.told === null ? "opened" : null;
    case "unmuted":
      // A person wanted quiet until now. What is merely a warning stands in the list again.
      if (after.severity === "critical" && after.told !== null) return "unmuted";
      return isNews(after) && after.told === null ? "reopened" : null;
    case "refreshed":
    case "eased":
      // Open, yet the last word told was that it is over: flapping had kept its return quiet.
      return isNews(after) && after.told === null ? "reopened" : null;
    case "closed":
      return before === null || before.told === null || before.status === "muted" ? null : "closed";
    case "corrected":
      return "corrected";
    case "absorbed":
      return null;
  }
}

function isNews(incident: Incident): boolean {
  return incident.status === "open" && incident.severity !== "info";
}

/** The way to people that an incident's messages take. */
export function channelFor(
  { slack, slackCritical }: RouteInput["hooks"],
  incident: Incident,
  severity: Severity,
): Channel {
  // What is wrong with a hook cannot be told through that hook.
  const broken = incident.operationId === null ? incident.evidence["channel"] : undefined;
  if (severity === "critical" && slackCritical && broken !== "slack_critical") {
    return "slack_critical";
  }
  return slack && broken !== "slack" ? "slack" : "log";
}
