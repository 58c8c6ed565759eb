/** A message as parts, and its two forms: Slack's blocks and plain text. Both say the same. */
import { clean, clip, fitSlack } from "./text.ts";

export type Part =
  /** A sentence or a few. */
  | { readonly kind: "text"; readonly text: string }
  /** Short facts, label and value. */
  | { readonly kind: "facts"; readonly facts: readonly (readonly [string, string])[] }
  /** A list; `more` counts what is not shown. */
  | {
      readonly kind: "list";
      readonly title: string;
      readonly lines: readonly string[];
      readonly more: number;
    }
  | { readonly kind: "link"; readonly label: string; readonly url: string }
  /** What a person can do with one click; in plain text there is none of it. */
  | { readonly kind: "buttons"; readonly block: ActionsBlock };

export interface Document {
  readonly title: string;
  readonly parts: readonly Part[];
}

export interface PlainText {
  readonly type: "plain_text";
  readonly text: string;
  readonly emoji: false;
}

export interface Button {
  readonly type: "button";
  readonly text: PlainText;
  readonly action_id: string;
  readonly value: string;
  /** Asked before it counts. */
  readonly confirm?: {
    readonly title: PlainText;
    readonly text: PlainText;
    readonly confirm: PlainText;
    readonly deny: PlainText;
  };
}

export interface ActionsBlock {
  readonly type: "actions";
  readonly block_id: string;
  readonly elements: Button[];
}

/** The blocks that are used here; Slack knows more. */
export type SlackBlock =
  | ActionsBlock
  | { readonly type: "header"; readonly text: PlainText }
  | { readonly type: "section"; readonly text: PlainText }
  | { readonly type: "section"; readonly fields: PlainText[] }
  | {
      readonly type: "section";
      readonly text: { readonly type: "mrkdwn"; readonly text: string; readonly verbatim: true };
    };

// Slack's own limits (Block Kit reference): a message that breaks one is refused as a whole.
export const BLOCKS_MAX = 50;
export const TEXT_CHARS_MAX = 3_000;
export const HEADER_CHARS_MAX = 150;
export const FIELDS_MAX = 10;
export const FIELD_CHARS_MAX = 2_000;
// The log's text holds a digest with every line that it may have.
export const PLAIN_CHARS_MAX = 16_000;
// One line of a list; the whole value is in `tallyd incidents show`.
const LINE_CHARS_MAX = 300;

/** Plain text: the log line, and Slack's notification text once it is escaped. */
export function toPlainText(document: Document): string {
  const lines = [clean(document.title), ...document.parts.flatMap(plainLines)];
  return clip(lines.join("\n"), PLAIN_CHARS_MAX);
}

/**
 * Slack's blocks, within its limits whatever the parts hold. Everything but a link is plain_text,
 * in which Slack reads no markup; it is escaped all the same.
 */
export function toBlocks(document: Document): readonly SlackBlock[] {
  const header = plain(clean(document.title), HEADER_CHARS_MAX);
  const blocks: SlackBlock[] = [{ type: "header", text: header }];
  for (const part of document.parts) blocks.push(...blocksOf(part));
  return blocks.slice(0, BLOCKS_MAX);
}

/** Slack's text beside the blocks, its head at most: notifications show it, and read markup. */
export function toSlackText(plainText: string): string {
  return fitSlack(plainText, TEXT_CHARS_MAX);
}

function plainLines(part: Part): readonly string[] {
  switch (part.kind) {
    case "text":
      return [clean(part.text)];
    case "facts":
      return part.facts.map(([label, value]) => `${label}: ${clean(value)}`);
    case "list":
      return [`${part.title}:`, ...listLines(part).map((line) => `  ${line}`)];
    case "link":
      return [`${part.label}: ${clean(part.url)}`];
    case "buttons":
      return [];
  }
}

function blocksOf(part: Part): readonly SlackBlock[] {
  switch (part.kind) {
    case "text":
      return sections([clean(part.text)]);
    case "facts":
      return factBlocks(part.facts);
    case "list":
      return sections([`${part.title}:`, ...listLines(part)]);
    case "link":
      return linkBlocks(part.label, part.url);
    case "buttons":
      return [part.block];
  }
}

function listLines(part: Extract<Part, { kind: "list" }>): readonly string[] {
  const lines = part.lines.map((line) => clip(clean(line), LINE_CHARS_MAX));
  return part.more > 0 ? [...lines, `and ${String(part.more)} more`] : lines;
}

function factBlocks(facts: readonly (readonly [string, string])[]): readonly SlackBlock[] {
  // Slack refuses an empty list of fields and an empty text.
  const filled = facts.filter(([, value]) => clean(value) !== "").slice(0, FIELDS_MAX);
  if (filled.length === 0) return [];
  const fields = filled.map(([label, value]) =>
    plain(`${label}\n${clean(value)}`, FIELD_CHARS_MAX),
  );
  return [{ type: "section", fields }];
}

/** As few sections as hold the lines; a section never cuts a line that fits into one. */
function sections(lines: readonly string[]): readonly SlackBlock[] {
  const texts: string[] = [];
  for (const line of lines.filter((text) => text !== "")) {
    const last = texts.at(-1);
    const joined = last === undefined ? line : `${last}\n${line}`;
    if (last !== undefined && fitsSection(joined)) texts[texts.length - 1] = joined;
    else texts.push(line);
  }
  return texts.map((text) => ({ type: "section", text: plain(text, TEXT_CHARS_MAX) }));
}

function fitsSection(text: string): boolean {
  return fitSlack(text, Number.MAX_SAFE_INTEGER).length <= TEXT_CHARS_MAX;
}

function plain(text: string, max: number): PlainText {
  // Slack refuses an empty text.
  return { type: "plain_text", text: fitSlack(text === "" ? "-" : text, max), emoji: false };
}

/** The one place with markup: a checked address of our own settings. */
function linkBlocks(label: string, address: string): readonly SlackBlock[] {
  if (!URL.canParse(address)) return [];
  const url = new URL(address);
  if (url.protocol !== "https:" && url.protocol !== "http:") return [];
  // Besides the three control characters, "|" would end the address.
  const safe = fitSlack(url.href, Number.MAX_SAFE_INTEGER).replaceAll("|", "%7C");
  const text = `<${safe}|${fitSlack(clean(label), HEADER_CHARS_MAX)}>`;
  if (text.length > TEXT_CHARS_MAX) return [];
  return [{ type: "section", text: { type: "mrkdwn", text, verbatim: true } }];
}
