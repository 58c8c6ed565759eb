import { clip } from "../alert/text.ts";
import type { Finding } from "../core/finding.ts";

// NUL and halves of surrogate pairs: PostgreSQL's text and jsonb refuse them, and one hostile
// reference must not keep a whole run's incidents from being stored.
const UNSTORABLE = /[\0\p{Cs}]/gu;
const REPLACEMENT = "\uFFFD";

// The CHECKs of tallyd.incident. They count characters, of which a string has no more than units.
const WORDS_CHARS_MAX = 4_000;
const SCOPE_CHARS_MAX = 128;
const CURRENCY_CHARS_MAX = 64;
const OPERATION_CHARS_MAX = 1_300;

/** The finding with every text fit for the database: foreign text is cut and cleaned. */
export function storable(finding: Finding): Finding {
  return {
    ...finding,
    subject: text(finding.subject),
    operationId: optional(finding.operationId, OPERATION_CHARS_MAX),
    basis: optional(finding.basis, CURRENCY_CHARS_MAX),
    scope: optional(finding.scope, SCOPE_CHARS_MAX),
    intents: finding.intents.map(text),
    charges: finding.charges.map(text),
    currency: optional(finding.currency, CURRENCY_CHARS_MAX),
    summary: clip(text(finding.summary), WORDS_CHARS_MAX),
    advice: clip(text(finding.advice), WORDS_CHARS_MAX),
    evidence: storableRecord(finding.evidence),
  };
}

function text(value: string): string {
  return value.replaceAll(UNSTORABLE, REPLACEMENT);
}

function optional(value: string | null, max: number): string | null {
  return value === null ? null : clip(text(value), max);
}

function storableRecord(record: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(record).map(([key, value]) => [text(key), storableValue(value)]),
  );
}

function storableValue(value: unknown): unknown {
  if (typeof value === "string") return text(value);
  if (typeof value === "bigint") return String(value);
  if (Array.isArray(value)) return value.map(storableValue);
  if (value instanceof Date || typeof value !== "object" || value === null) return value;
  return storableRecord({ ...value });
}
