import { createHash } from "node:crypto";

import { z } from "zod";

import type { FieldFault, IntentRow, RowFault } from "../../core/intent.ts";
import { isIntentState } from "../../core/states.ts";
import { toBigint } from "../../store/pool.ts";
import { FIELD_NAMES } from "./fields.ts";
import type { IntentField } from "./fields.ts";
import { canonicalChainFields } from "./chain-row.ts";
import { fingerprintFit } from "./fingerprint.ts";
import { placeRow } from "./place.ts";
import type { PlaceSettings } from "./place.ts";
import { responseKind } from "./response-kind.ts";
import { isoOfMicros, parseMicros } from "./time-sql.ts";

/** A row as it comes from the team's table: every field as text. */
export type RawRow = Readonly<Record<IntentField, string | null>>;

/** What a conversion needs besides the row. */
export interface RowContext {
  readonly states: Readonly<Record<string, string>>;
  readonly place: PlaceSettings;
  /** The snapshot's time in the team's database, microseconds since 1970. */
  readonly nowMicros: bigint;
  /** How far a time may lie ahead of that before it is remarked. */
  readonly aheadMaxMs: number;
}

/** A converted row; `row` is null when it was set aside, `fault` when nothing is wrong. */
export interface ReadRow {
  readonly row: IntentRow | null;
  readonly fault: RowFault | null;
}

// Values in messages are cut: a wrong mapping may point at a column with personal data.
const SEEN_CHARS_MAX = 60;
// Length of an id in a fault; the table's limit.
const ID_CHARS_MAX = 600;
// numeric(78,0), the widest amount that is kept.
const AMOUNT_DIGITS_MAX = 78;

function filled(charsMax: number) {
  return z
    .string({ error: "a value" })
    .min(1, "a value")
    .max(charsMax, `at most ${String(charsMax)} characters`);
}

function optionalText(charsMax: number) {
  return z
    .string()
    .max(charsMax, `at most ${String(charsMax)} characters`)
    .nullable()
    .transform((text) => (text === "" ? null : text));
}

const amount = z.string({ error: "a value" }).transform((text, context) => {
  try {
    const parsed = toBigint(text);
    if (parsed >= 0n && String(parsed).length <= AMOUNT_DIGITS_MAX) return parsed;
  } catch {
    // Falls through: the sentence below says more than the parser's.
  }
  context.addIssue({ code: "custom", message: "a whole number of minor units, 0 or more" });
  return z.NEVER;
});

const time = z.string({ error: "a time" }).transform((text, context) => {
  const micros = parseMicros(text);
  if (micros !== null) return micros;
  context.addIssue({ code: "custom", message: "a finite time after 1970" });
  return z.NEVER;
});

// The lengths are those of tallyd.intent.
const RAW = z.object({
  intentId: filled(ID_CHARS_MAX),
  accountId: filled(255),
  amount,
  currency: z
    .string({ error: "a value" })
    .transform((text) => text.trim().toLowerCase())
    .pipe(filled(64)),
  state: filled(255),
  createdAt: time,
  updatedAt: time.nullable(),
  idempotencyKey: optionalText(600),
  chargeId: optionalText(255),
  response: z.string().nullable(),
  operation: optionalText(64),
  fingerprint: optionalText(600),
  reference: optionalText(600),
  paymentId: optionalText(600),
  customer: optionalText(255),
  rail: optionalText(255),
  network: optionalText(64),
  asset: optionalText(128),
  payer: optionalText(255),
  payee: optionalText(255),
  nonce: optionalText(128),
  validBefore: time.nullable(),
  repeatConfirmed: z
    .string()
    .nullable()
    .transform((text) => /^(?:t|true|yes|on|1)$/i.test(text ?? "")),
} satisfies Record<IntentField, z.ZodType>);

type Parsed = z.output<typeof RAW>;

/**
 * Turns a row of the team's table into tallyd's words. Never throws: a row with a value that means
 * nothing is set aside with the field, the value and what is allowed, and blocks no other row.
 */
export function convertRow(raw: RawRow, context: RowContext): ReadRow {
  const parsed = RAW.safeParse(raw);
  const faults: FieldFault[] = parsed.success
    ? []
    : parsed.error.issues.map((issue) =>
        fieldFault(raw, String(issue.path[0]) as IntentField, issue.message),
      );
  const state = context.states[raw.state ?? ""];
  if (raw.state !== null && raw.state !== "" && (state === undefined || !isIntentState(state))) {
    faults.push(fieldFault(raw, "state", Object.keys(context.states).join(", ")));
  }
  if (!parsed.success || state === undefined || !isIntentState(state) || faults.length > 0) {
    return { row: null, fault: rowFault(raw, false, faults) };
  }
  const place = placeRow(parsed.data, context.place);
  if ("field" in place) {
    return { row: null, fault: rowFault(raw, false, [place]) };
  }
  const ahead = timesAhead(parsed.data, context);
  const row = { ...toRow(parsed.data), ...place, state };
  const { chains } = context.place;
  return {
    row: withHash(
      row.rail === "evm"
        ? canonicalChainFields(row, { chains, response: parsed.data.response })
        : row,
    ),
    fault: ahead.length === 0 ? null : rowFault(raw, true, ahead),
  };
}

function toRow(parsed: Parsed): Omit<IntentRow, "rail" | "scope" | "state" | "rowHash"> {
  const { amount: minor, currency, intentId, fingerprint } = parsed;
  return {
    intentId,
    accountId: parsed.accountId,
    kind: parsed.operation?.toLowerCase() ?? "charge",
    amount: minor,
    currency,
    idempotencyKey: parsed.idempotencyKey,
    rawState: parsed.state,
    chargeId: hexLower(parsed.chargeId),
    responseKind: responseKind(parsed.response),
    fingerprint,
    fingerprintFit:
      fingerprint === null
        ? null
        : fingerprintFit(fingerprint, { intentId, amount: minor, currency }),
    reference: parsed.reference,
    paymentId: parsed.paymentId,
    customer: parsed.customer,
    network: parsed.network?.toLowerCase() ?? null,
    asset: hexLower(parsed.asset),
    payer: hexLower(parsed.payer),
    payee: hexLower(parsed.payee),
    nonce: hexLower(parsed.nonce),
    validBefore: parsed.validBefore === null ? null : isoOfMicros(parsed.validBefore),
    challengeNonce: null,
    challengeMemo: null,
    repeatConfirmed: parsed.repeatConfirmed,
    createdAt: isoOfMicros(parsed.createdAt),
    updatedAt: isoOfMicros(parsed.updatedAt ?? parsed.createdAt),
  };
}

/** Addresses and hashes are accepted in any case and kept in one. */
function hexLower(text: string | null): string | null {
  return text !== null && /^(?:eip155:\d+:)?0x/i.test(text) ? text.toLowerCase() : text;
}

function withHash(row: Omit<IntentRow, "rowHash">): IntentRow {
  const text = JSON.stringify(row, (_, value: unknown) =>
    typeof value === "bigint" ? String(value) : value,
  );
  return { ...row, rowHash: createHash("sha256").update(text).digest("hex") };
}

/** A time ahead of the clock is a wrong clock or a wrong zone, and no negative age (case B45). */
function timesAhead(parsed: Parsed, context: RowContext): FieldFault[] {
  const limit = context.nowMicros + BigInt(context.aheadMaxMs) * 1_000n;
  return (["createdAt", "updatedAt"] as const).flatMap((field) => {
    const micros = parsed[field];
    if (micros === null || micros <= limit) return [];
    const allowed = `a time up to now, ${isoOfMicros(context.nowMicros)}`;
    return [{ field, seen: isoOfMicros(micros), allowed }];
  });
}

function fieldFault(raw: RawRow, field: IntentField, allowed: string): FieldFault {
  const seen = FIELD_NAMES.includes(field) ? raw[field] : null;
  return { field, seen: seen === null ? "nothing" : seen.slice(0, SEEN_CHARS_MAX), allowed };
}

function rowFault(raw: RawRow, kept: boolean, faults: readonly FieldFault[]): RowFault {
  return { intentId: raw.intentId?.slice(0, ID_CHARS_MAX) ?? null, kept, faults };
}
