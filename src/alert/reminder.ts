/** Reminders of criticals that nobody has acknowledged: alone when few, else as one digest. */
import type { Incident } from "../core/incident.ts";
import { formatAmount } from "../core/money.ts";
import type { ToldFacts } from "../store/reminders.ts";
import type { Digest, DigestItem } from "./digest.ts";
import { digestItem } from "./digest.ts";
import type { Document } from "./document.ts";
import { CODE_TITLES, bodyOf, moneyWords } from "./message.ts";
import type { Channel, RouteInput } from "./route.ts";
import { CHANNELS, SINGLES_PER_MINUTE_MAX, channelFor } from "./route.ts";
import { clean } from "./text.ts";

/** One incident that people are reminded of. */
export interface Reminding {
  readonly incident: Incident;
  readonly openForMs: number;
  /** What has changed since the last message, in words; empty: nothing. */
  readonly changes: readonly string[];
}

export type ReminderTell =
  | { readonly kind: "single"; readonly channel: Channel; readonly about: Reminding }
  | {
      readonly kind: "digest";
      readonly channel: Channel;
      readonly digest: Digest["kind"];
      readonly severity: "critical";
      readonly items: readonly DigestItem[];
    };

// A reminder is no news: a few are worth a message each, more are read as a list.
export const REMINDERS_ALONE_MAX = 3;

/** Decides how reminders of one moment are told. Pure. */
export function routeReminders(input: {
  readonly remindings: readonly Reminding[];
  readonly hooks: RouteInput["hooks"];
  /** Channel -> single messages of the last minute. */
  readonly singles: ReadonlyMap<string, number>;
}): readonly ReminderTell[] {
  return CHANNELS.flatMap((channel): readonly ReminderTell[] => {
    const here = input.remindings.filter(
      ({ incident }) => channelFor(input.hooks, incident, "critical") === channel,
    );
    if (here.length === 0) return [];
    const room = SINGLES_PER_MINUTE_MAX - (input.singles.get(channel) ?? 0);
    if (here.length <= Math.min(REMINDERS_ALONE_MAX, room)) {
      return here.map((about) => ({ kind: "single", channel, about }));
    }
    const items = here.map(reminderItem);
    return [{ kind: "digest", channel, digest: "reminders", severity: "critical", items }];
  });
}

/** The line of an incident in a digest of reminders: how long, what changed, what it is. */
export function reminderItem({ incident, openForMs, changes }: Reminding): DigestItem {
  const words = [`open for ${spanWords(openForMs)}`, ...changes, clean(incident.summary)];
  const item = { ...incident, summary: words.join("; ") };
  return digestItem(item, { first: false, over: false });
}

/** The message of one reminder. */
export function reminderDocument(
  { incident, openForMs, changes }: Reminding,
  options: { readonly publicUrl: string | null; readonly buttons?: boolean },
): Document {
  const trouble = `${CODE_TITLES[incident.code]}${moneyWords(incident)}`;
  const span = spanWords(openForMs);
  const lines = changes.length === 0 ? ["Nothing has changed."] : changes;
  return {
    title: `Critical, still open after ${span}: ${trouble}`,
    parts: [
      { kind: "text", text: incident.summary },
      { kind: "list", title: "Since the last message", lines, more: 0 },
      {
        kind: "text",
        text: `Nobody has acknowledged it: tallyd incidents ack ${incident.id} ends the reminders.`,
      },
      ...bodyOf(incident, { over: false, ...options }),
    ],
  };
}

type FactsNow = Pick<Incident, "charges" | "amountAtRisk" | "currency" | "count">;

/** What has changed since a message that said `told`. */
export function changesSince(told: ToldFacts, incident: FactsNow): readonly string[] {
  const found = incident.count - told.count;
  return [
    ...chargesWords(incident.charges.length - told.charges, incident.charges.length),
    ...moneyChange(told, incident),
    ...(found > 0 ? [found === 1 ? "found once more" : `found ${String(found)} more times`] : []),
  ];
}

function chargesWords(more: number, now: number): readonly string[] {
  if (more === 0) return [];
  const many = Math.abs(more);
  const noun = many === 1 ? "charge" : "charges";
  return [`${String(many)} ${noun} ${more > 0 ? "more" : "fewer"}, ${String(now)} now`];
}

function moneyChange(told: ToldFacts, { amountAtRisk, currency }: FactsNow): readonly string[] {
  const before = told.amountAtRisk === null ? null : BigInt(told.amountAtRisk);
  if (before === amountAtRisk && told.currency === currency) return [];
  if (amountAtRisk === null || currency === null) return ["no money is named any more"];
  const now = formatAmount(amountAtRisk, clean(currency));
  if (before === null || told.currency !== currency) return [`money at risk is ${now} now`];
  const then = formatAmount(before, clean(currency));
  return [`money at risk ${amountAtRisk > before ? "rose" : "fell"} from ${then} to ${now}`];
}

const MINUTE_MS = 60_000;
const HOUR_MINUTES = 60;
const DAY_HOURS = 24;
// "47 h" is still a number that people have a feeling for.
const HOURS_MAX = 48;

/** `30 min`, `2 h 5 min`, `3 days 4 h`. */
export function spanWords(ms: number): string {
  const minutes = Math.max(0, Math.floor(ms / MINUTE_MS));
  if (minutes < HOUR_MINUTES) return `${String(minutes)} min`;
  const hours = Math.floor(minutes / HOUR_MINUTES);
  if (hours < HOURS_MAX) return withRest(`${String(hours)} h`, minutes % HOUR_MINUTES, "min");
  return withRest(`${String(Math.floor(hours / DAY_HOURS))} days`, hours % DAY_HOURS, "h");
}

function withRest(words: string, rest: number, unit: string): string {
  return rest === 0 ? words : `${words} ${String(rest)} ${unit}`;
}
