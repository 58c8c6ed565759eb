/**
 * Marks: what ties a Stripe object to the team's own rows, and whether the object is ours at all
 * (src/README.md, matching). Only the configured metadata keys are read; the rest of the metadata
 * is
 * neither kept nor counted beyond "there is some".
 */
import { createHash } from "node:crypto";

import type { Ownership } from "../../core/facts.ts";
import type { StripeSettings } from "../../core/settings.ts";

/** The settings that decide about marks. */
export type MarkSettings = Pick<
  StripeSettings,
  "metadataKey" | "referenceKey" | "keyMetadata" | "owned"
>;

/** Marks of one object, as the facts carry them. */
export interface Marks {
  readonly intentMark: string | null;
  readonly reference: string | null;
  readonly keyMark: string | null;
  readonly owned: Ownership;
}

type Metadata = Readonly<Record<string, unknown>>;

// The mirror's columns; Stripe allows 500 characters in a metadata value.
const MARK_MAX = 600;
// 128 bits: no two descriptions of one account will ever meet by chance.
const HASH_HEX = 32;
const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Reads the marks of an object's metadata. */
export function readMarks(metadata: Metadata | null, settings: MarkSettings): Marks {
  const given = metadata ?? {};
  let keyMark: string | null = null;
  for (const key of settings.keyMetadata) keyMark ??= markAt(given, key);
  return {
    intentMark: markAt(given, settings.metadataKey),
    reference: markAt(given, settings.referenceKey),
    keyMark,
    owned: ownership(given, settings.owned),
  };
}

function markAt(metadata: Metadata, key: string): string | null {
  const value = Object.hasOwn(metadata, key) ? metadata[key] : undefined;
  if (typeof value !== "string") return null;
  const mark = storableText(value);
  // A cut mark could equal another one; a mark that does not fit is no mark.
  return mark === "" || mark.length > MARK_MAX ? null : mark;
}

function ownership(metadata: Metadata, predicate: MarkSettings["owned"]): Ownership {
  if (predicate === null) return "yes";
  if (Object.keys(metadata).length === 0) return "unknown";
  const pairs = Object.entries(predicate.metadata);
  return pairs.every(([key, value]) => Object.hasOwn(metadata, key) && metadata[key] === value)
    ? "yes"
    : "no";
}

/** `value` without what PostgreSQL cannot store: NUL bytes and halves of surrogate pairs. */
export function storableText(value: string): string {
  return value.replaceAll("\u0000", "").replace(LONE_SURROGATE, "\ufffd");
}

/**
 * SHA-256 prefix of a text that must not be stored itself (a description, a card's fingerprint):
 * equal texts stay recognisable. Null and blank texts have none.
 */
export function hashedText(value: string | null | undefined): string | null {
  const trimmed = value?.trim() ?? "";
  if (trimmed === "") return null;
  return createHash("sha256").update(trimmed, "utf8").digest("hex").slice(0, HASH_HEX);
}
