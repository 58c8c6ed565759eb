/** Many alerts as one message: counts, money, the worst by name. Digests can be added up. */
import type { Severity } from "../core/finding.ts";
import { SEVERITY_RANK } from "../core/finding.ts";
import type { Incident } from "../core/incident.ts";
import { currencyExponent, formatAmount } from "../core/money.ts";
import type { Document, Part } from "./document.ts";
import { clean, clip } from "./text.ts";

/**
 * `storm`: news of many; `over`: many ended; `backlog`: what waited for a way out; `reminders`:
 * what nobody has acknowledged; `flood`: more of what one fault of configuration causes.
 */
export type DigestKind = "storm" | "over" | "backlog" | "reminders" | "flood";

/** One alert inside a digest, small enough to be kept with each message. */
export interface DigestItem {
  readonly id: string;
  readonly code: string;
  readonly severity: Severity;
  /** The first word ever told about it. */
  readonly first: boolean;
  /** The word was that it is over. */
  readonly over: boolean;
  readonly summary: string;
  /** Minor units as text; `null`: no money is named. */
  readonly amount: string | null;
  readonly currency: string | null;
  /** When it was so, as ISO 8601; left out by earlier versions. */
  readonly at?: string;
}

export interface Digest {
  readonly kind: DigestKind;
  readonly total: number;
  readonly criticals: number;
  /** Alerts per code. */
  readonly counts: Readonly<Record<string, number>>;
  /** Money at risk per currency, minor units as text. Currencies are never added up. */
  readonly sums: Readonly<Record<string, string>>;
  /** The largest by money. */
  readonly worst: readonly DigestItem[];
  /** First criticals that are not among the worst, as many as can be named. */
  readonly named: readonly DigestItem[];
  /** All of them, for adding up exactly; left out where they are too many to be kept. */
  readonly members?: readonly DigestItem[];
}

const WORST_MAX = 5;
// Each is one line of at most 200 characters: together four sections of a message that may have
// fifty. Beyond that a list is no help, and `tallyd incidents list` has them all.
const NAMED_MAX = 40;
// Some hundred kilobytes of a message at most. Beyond that only sums are kept, and an incident that
// is told twice in what is added up counts twice.
const MEMBERS_MAX = 1_000;
const SUMMARY_CHARS_MAX = 120;
// Currencies and codes have short lists in practice; a hostile currency text cannot make it long.
const LINES_MAX = 20;

/** The item of an incident. */
export function digestItem(
  incident: Incident,
  word: { readonly first: boolean; readonly over: boolean },
): DigestItem {
  const { id, code, severity, summary, amountAtRisk, currency, lastSeen, closedAt } = incident;
  const at = word.over ? (closedAt ?? lastSeen) : lastSeen;
  return {
    ...{ id, code, severity, currency, ...word, at: at.toISOString() },
    summary: clip(clean(summary), SUMMARY_CHARS_MAX),
    amount: amountAtRisk === null ? null : String(amountAtRisk),
  };
}

/** A digest of items; of several words about one incident the last one counts. */
export function digestOf(kind: DigestKind, all: readonly DigestItem[]): Digest {
  const items = lastWords(all);
  const counts: Record<string, number> = {};
  const sums: Record<string, bigint> = {};
  // What waited until it was over is counted apart, and its money is at risk no more.
  const isLive = (item: DigestItem): boolean => kind === "over" || !item.over;
  const live = items.filter(isLive);
  for (const item of items) {
    const key = isLive(item) ? item.code : `${item.code}, over`;
    counts[key] = (counts[key] ?? 0) + 1;
  }
  for (const item of live) {
    if (item.amount !== null && item.currency !== null) {
      const currency = clean(item.currency).toUpperCase();
      sums[currency] = (sums[currency] ?? 0n) + BigInt(item.amount);
    }
  }
  return {
    kind,
    total: items.length,
    criticals: live.filter((item) => item.severity === "critical").length,
    counts,
    sums: Object.fromEntries(Object.entries(sums).map(([key, sum]) => [key, String(sum)])),
    ...pick(live),
    ...(items.length > MEMBERS_MAX ? {} : { members: items }),
  };
}

/** An incident's first word stays the first, whatever was said about it later. */
function lastWords(items: readonly DigestItem[]): readonly DigestItem[] {
  const byId = new Map<string, DigestItem>();
  for (const item of items) {
    const known = byId.get(item.id) ?? item;
    const last = (item.at ?? "") >= (known.at ?? "") ? item : known;
    byId.set(item.id, { ...last, first: item.first || known.first });
  }
  return [...byId.values()];
}

/** Both digests as one, the second being the later; the kind is the first's. */
export function mergeDigests(first: Digest, second: Digest): Digest {
  return sumDigests(first.kind, [first, second]);
}

/** All digests as one of a kind, in whatever order. */
export function sumDigests(kind: DigestKind, digests: readonly Digest[]): Digest {
  const members = digests.flatMap((digest) => digest.members ?? []);
  const exact = digestOf(kind, members);
  const others = digests.filter((digest) => digest.members === undefined);
  if (others.length === 0) return exact;
  return others.reduce((sum, other) => addDigests(sum, ofKind(kind, other)), exact);
}

/** A digest without members as one of another kind: what ended is no money at risk among news. */
function ofKind(kind: DigestKind, digest: Digest): Digest {
  if (digest.kind !== "over" || kind === "over") return { ...digest, kind };
  const over = Object.entries(digest.counts).map(([code, count]) => [`${code}, over`, count]);
  const counts = Object.fromEntries(over) as Record<string, number>;
  return { ...digest, kind, counts, criticals: 0, sums: {}, worst: [], named: [] };
}

/** Without all members: what both tell of counts twice. */
function addDigests(first: Digest, second: Digest): Digest {
  const sums: Record<string, string> = { ...first.sums };
  for (const [currency, sum] of Object.entries(second.sums)) {
    sums[currency] = String(BigInt(sums[currency] ?? 0) + BigInt(sum));
  }
  const counts: Record<string, number> = { ...first.counts };
  for (const [code, count] of Object.entries(second.counts)) {
    counts[code] = (counts[code] ?? 0) + count;
  }
  const { kind } = first;
  return {
    kind,
    total: first.total + second.total,
    criticals: first.criticals + second.criticals,
    counts,
    sums,
    ...pick([...first.worst, ...first.named, ...second.worst, ...second.named]),
  };
}

function pick(items: readonly DigestItem[]): Pick<Digest, "worst" | "named"> {
  const sorted = [...lastWords(items)].sort(byMoney);
  const worst = sorted.slice(0, WORST_MAX);
  const named = sorted
    .slice(WORST_MAX)
    .filter((item) => item.first && item.severity === "critical")
    .slice(0, NAMED_MAX);
  return { worst, named };
}

/** Largest number first; severity and id break ties. Only an order: no rate is implied. */
function byMoney(a: DigestItem, b: DigestItem): number {
  const difference = scaled(b) - scaled(a);
  if (difference !== 0n) return difference > 0n ? 1 : -1;
  const rank = SEVERITY_RANK[b.severity] - SEVERITY_RANK[a.severity];
  if (rank !== 0) return rank;
  return a.id < b.id ? -1 : 1;
}

// The largest exponent of a currency: amounts are compared in thousandths.
const EXPONENT_MAX = 3;

function scaled(item: DigestItem): bigint {
  if (item.amount === null || item.currency === null) return -1n;
  const exponent = currencyExponent(item.currency) ?? EXPONENT_MAX;
  return BigInt(item.amount) * 10n ** BigInt(EXPONENT_MAX - exponent);
}

/** The digest as a message. */
export function digestDocument(digest: Digest): Document {
  return {
    title: titleOf(digest),
    parts: [
      ...countsPart(digest),
      ...sumsPart(digest),
      ...itemsPart(digest.kind === "over" ? "Largest" : "Worst by money", digest.worst, 0),
      ...itemsPart("Also critical", digest.named, unnamed(digest)),
      { kind: "list", title: "Look further", lines: ["tallyd incidents list"], more: 0 },
    ],
  };
}

function titleOf(digest: Digest): string {
  const { total, criticals } = digest;
  const critical = criticals === 0 ? "" : `, ${String(criticals)} of them critical`;
  switch (digest.kind) {
    case "storm":
      return `${String(total)} alerts in one message${critical}`;
    case "over":
      return `${String(total)} incidents are over${critical}`;
    case "backlog":
      return `${String(total)} alerts that waited for delivery${critical}`;
    case "reminders":
      return `${String(total)} critical incidents are open and not acknowledged`;
    case "flood":
      return `${String(total)} more of a flood that was told before${critical}`;
  }
}

/** Criticals that no line names; those that ended need no name. */
function unnamed(digest: Digest): number {
  if (digest.kind === "over") return 0;
  const named = [...digest.worst, ...digest.named].filter((item) => item.severity === "critical");
  return Math.max(0, digest.criticals - named.length);
}

function countsPart(digest: Digest): readonly Part[] {
  const lines = Object.entries(digest.counts)
    .sort(([, a], [, b]) => b - a)
    .map(([code, count]) => `${String(count)} x ${code}`);
  return [bounded("How many", lines)];
}

function sumsPart(digest: Digest): readonly Part[] {
  const lines = Object.entries(digest.sums).map(([currency, sum]) =>
    formatAmount(BigInt(sum), currency),
  );
  if (lines.length === 0) return [];
  return [bounded(digest.kind === "over" ? "Money that was at risk" : "Money at risk", lines)];
}

function bounded(title: string, lines: readonly string[]): Part {
  const more = Math.max(0, lines.length - LINES_MAX);
  return { kind: "list", title, lines: lines.slice(0, LINES_MAX), more };
}

function itemsPart(title: string, items: readonly DigestItem[], more: number): readonly Part[] {
  if (items.length === 0 && more === 0) return [];
  return [{ kind: "list", title, lines: items.map(itemLine), more }];
}

function itemLine(item: DigestItem): string {
  const { amount, currency } = item;
  const money =
    amount === null || currency === null ? "" : ` ${formatAmount(BigInt(amount), currency)}:`;
  return `${item.id} ${item.code}${money} ${item.summary}`;
}
