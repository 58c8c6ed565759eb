import { z } from "zod";

import { DURATION_FORM, parseDuration } from "./duration.ts";

/** A zod type that takes anything and gives a `T`. */
export type Value<T> = z.ZodPipe<z.ZodUnknown, z.ZodTransform<Awaited<T>>>;

/**
 * A zod type made of one parser. A value that the parser refuses (`undefined`) is one issue whose
 * message is `allowed`; the loader adds the setting's name and what was seen.
 */
export function value<T>(allowed: string, parse: (raw: unknown) => T | undefined): Value<T> {
  return z.unknown().transform((raw, context): T => {
    const parsed = parse(raw);
    if (parsed !== undefined) return parsed;
    context.addIssue({ code: "custom", message: allowed });
    return z.NEVER;
  });
}

const PORT_MAX = 65_535;
const MINUTE_MS = 60_000;
// setTimeout holds 24.8 days; a beat of more than a week would be blindness, not thrift.
const BEAT_MAX_MS = 7 * 24 * 60 * MINUTE_MS;
// The scheduler's grain: ticks are whole seconds, the same on every replica.
const BEAT_GRAIN_MS = 1_000;
// Rungs of a ladder; every rung is a look-up that costs a read.
const RUNGS_MAX = 50;
const NAME_LENGTH_MAX = 255;

/** Text with something in it. */
export const text = value("some text", (raw) => {
  if (typeof raw !== "string" || raw.trim() === "") return undefined;
  return raw.trim();
});

/** A duration in milliseconds, zero included. */
export const duration = value(DURATION_FORM, parseDuration);

/** A beat in milliseconds. */
export const beat = value(`${DURATION_FORM}, whole seconds from 1s to 7d`, (raw) => {
  const ms = parseDuration(raw);
  if (ms === undefined || ms < BEAT_GRAIN_MS || ms > BEAT_MAX_MS) return undefined;
  return ms % BEAT_GRAIN_MS === 0 ? ms : undefined;
});

/** Growing delays of a ladder, in milliseconds. */
export const ladder = value(
  `1 to ${String(RUNGS_MAX)} growing durations, such as 1m,5m,30m`,
  (raw) => {
    const delays = splitList(raw)?.map((item) => parseDuration(item));
    if (delays === undefined || delays.length === 0 || delays.length > RUNGS_MAX) return undefined;
    const known = delays.filter((delay) => delay !== undefined);
    if (known.length < delays.length) return undefined;
    const grows = known.every((delay, index) => index === 0 || delay > (known[index - 1] ?? 0));
    return grows ? known : undefined;
  },
);

// A shorter wait would be over before the first message is read.
const REMINDER_MIN_MS = MINUTE_MS;
// The last wait repeats, so a handful says all.
const REMINDERS_MAX = 10;

/** Waits before reminders, in milliseconds, growing; `off` is none. */
export const reminders = value(
  `off, or 1 to ${String(REMINDERS_MAX)} growing durations from 1m, such as 30m,2h,24h`,
  (raw) => {
    if (raw === "off") return [];
    const waits = splitList(raw)?.map((item) => parseDuration(item) ?? 0);
    if (waits === undefined || waits.length === 0 || waits.length > REMINDERS_MAX) return undefined;
    const grows = waits.every((wait, index) => index === 0 || wait > (waits[index - 1] ?? 0));
    return grows && (waits[0] ?? 0) >= REMINDER_MIN_MS ? waits : undefined;
  },
);

/** A wall time as `HH:MM`; `off` is `null`. */
export const wallTime = value<string | null>("off, or a time of day such as 09:00", (raw) => {
  if (raw === "off") return null;
  return typeof raw === "string" && /^([01]\d|2[0-3]):[0-5]\d$/.test(raw) ? raw : undefined;
});

/** A whole number from 0 to `max`. */
function wholeNumber(raw: unknown, max: number): number | undefined {
  const number = typeof raw === "string" && /^\d{1,15}$/.test(raw.trim()) ? Number(raw) : raw;
  if (typeof number !== "number" || !Number.isInteger(number)) return undefined;
  return number >= 0 && number <= max ? number : undefined;
}

export const port = value("a port from 0 to 65535 (0 = any free one)", (raw) =>
  wholeNumber(raw, PORT_MAX),
);

export const readsPerSecond = value("a whole number from 0 to 1000 (0 = no limit)", (raw) =>
  wholeNumber(raw, 1_000),
);

export const yesNo = value("true or false", (raw) => {
  if (typeof raw === "boolean") return raw;
  if (raw === "true") return true;
  return raw === "false" ? false : undefined;
});

/** One of the named words. */
export function oneOf<const T extends string>(words: readonly T[]): Value<T> {
  const allowed = `${words.slice(0, -1).join(", ")} or ${words.at(-1) ?? ""}`;
  return value(allowed, (raw) => words.find((word) => word === raw));
}

export const databaseUrl = value(
  "a URL postgres://USER@HOST:PORT/DATABASE, with a password or without",
  (raw) => {
    if (typeof raw !== "string" || !URL.canParse(raw.trim())) return undefined;
    const { protocol } = new URL(raw.trim());
    return protocol === "postgres:" || protocol === "postgresql:" ? raw.trim() : undefined;
  },
);

/** An http or https address, without a slash at its end. */
export const webAddress = value("an http:// or https:// URL", (raw) => {
  if (typeof raw !== "string" || !URL.canParse(raw.trim())) return undefined;
  const { protocol } = new URL(raw.trim());
  if (protocol !== "http:" && protocol !== "https:") return undefined;
  return raw.trim().replace(/\/+$/, "");
});

/** An http or https address that is used as it is written, to the last slash. */
export const exactAddress = value(
  "an http:// or https:// URL without a user name or password in it",
  (raw) => {
    if (typeof raw !== "string" || !URL.canParse(raw.trim())) return undefined;
    const { protocol, username, password } = new URL(raw.trim());
    if (protocol !== "http:" && protocol !== "https:") return undefined;
    return username === "" && password === "" ? raw.trim() : undefined;
  },
);

export const host = value("a host name or an IP address", (raw) => {
  if (typeof raw !== "string") return undefined;
  return /^[A-Za-z0-9.:_%-]{1,255}$/.test(raw.trim()) ? raw.trim() : undefined;
});

export const token = value("a token of visible characters without spaces", (raw) =>
  typeof raw === "string" && /^[\x21-\x7e]+$/.test(raw.trim()) ? raw.trim() : undefined,
);

export const stripeKey = value(
  "a Stripe key that starts with rk_live_, rk_test_, sk_live_ or sk_test_",
  (raw) => {
    if (typeof raw !== "string") return undefined;
    return /^[rs]k_(?:live|test)_[\x21-\x7e]+$/.test(raw.trim()) ? raw.trim() : undefined;
  },
);

export const webhookSecrets = value(
  "signing secrets that start with whsec_, separated by commas, none of them empty",
  (raw) => {
    const secrets = splitList(raw);
    if (secrets === undefined || secrets.length === 0) return undefined;
    return secrets.every((secret) => /^whsec_[\x21-\x7e]+$/.test(secret)) ? secrets : undefined;
  },
);

/** As Slack shows it under Basic Information. */
export const slackSigningSecret = value("a signing secret of 32 hexadecimal digits", (raw) =>
  typeof raw === "string" && /^[0-9a-f]{32}$/.test(raw.trim()) ? raw.trim() : undefined,
);

// Standard Webhooks: the key has between 24 and 64 bytes.
const SIGNING_KEY_BYTES_MIN = 24;
const SIGNING_KEY_BYTES_MAX = 64;

// The old key and the new one; a third would only make the header longer.
const SIGNING_KEYS_MAX = 2;

/** Keys of Standard Webhooks' signatures, as they are written. */
export const signingKeys = value(
  `whsec_ and 24 to 64 bytes in base64, ${String(SIGNING_KEYS_MAX)} at most, separated by a comma`,
  (raw) => {
    const keys = splitList(raw);
    if (keys === undefined || keys.length > SIGNING_KEYS_MAX) return undefined;
    return keys.every(isSigningKey) ? keys : undefined;
  },
);

function isSigningKey(key: string): boolean {
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(key)?.[1];
  if (encoded === undefined) return false;
  const { length } = Buffer.from(encoded, "base64");
  return length >= SIGNING_KEY_BYTES_MIN && length <= SIGNING_KEY_BYTES_MAX;
}

/** A PagerDuty integration key: PagerDuty refuses every other length. */
export const routingKey = value("an integration key of 32 letters and digits", (raw) =>
  typeof raw === "string" && /^[A-Za-z0-9]{32}$/.test(raw.trim()) ? raw.trim() : undefined,
);

export const accounts = value("Stripe account ids (acct_…), each once", (raw) => {
  if (typeof raw === "string" && raw.trim() === "") return [];
  const ids = splitList(raw);
  if (ids?.every((id) => /^acct_[A-Za-z0-9_]+$/.test(id)) !== true) return undefined;
  return new Set(ids).size === ids.length ? ids : undefined;
});

export const names = value("names separated by commas", (raw) => {
  if (typeof raw === "string" && raw.trim() === "") return [];
  const list = splitList(raw);
  return list?.every((name) => name !== "" && name.length <= NAME_LENGTH_MAX) === true
    ? list
    : undefined;
});

/** An amount in minor units: digits alone, as text, because JSON numbers lose digits. */
export const amount = value(
  'an amount in minor units as text of digits, such as "500000"',
  (raw) => (typeof raw === "string" && /^\d{1,78}$/.test(raw) ? BigInt(raw) : undefined),
);

export const currency = value("a currency code or a token's symbol", (raw) =>
  typeof raw === "string" && /^\S{1,64}$/.test(raw) ? raw.toLowerCase() : undefined,
);

/** `table`, `schema.table`, each part plain or in double quotes. */
export const relation = value('a relation: table or schema.table, "quoted" where needed', (raw) => {
  if (typeof raw !== "string") return undefined;
  const part = String.raw`(?:[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*|"(?:[^"]|"")+")`;
  return new RegExp(`^${part}(?:\\.${part})?$`).test(raw.trim()) ? raw.trim() : undefined;
});

/** An IANA zone. */
export const zone = value("a time zone name such as Europe/Berlin", parseZone);

/** An IANA zone or a fixed offset east of Greenwich. */
export const zoneOrOffset = value(
  "a time zone name such as Europe/Berlin, or an offset such as +02:00",
  (raw) => {
    if (typeof raw === "string" && /^[+-](?:0\d|1[0-4]):[0-5]\d$/.test(raw.trim())) {
      return raw.trim();
    }
    return parseZone(raw);
  },
);

function parseZone(raw: unknown): string | undefined {
  // Abbreviations such as CEST are no zones: they name one half of the year alone.
  if (
    typeof raw !== "string" ||
    !/^(?:UTC|GMT|[A-Za-z_]+(?:\/[A-Za-z0-9_+-]+)+)$/.test(raw.trim())
  ) {
    return undefined;
  }
  try {
    return new Intl.DateTimeFormat("en", { timeZone: raw.trim() }).resolvedOptions().timeZone === ""
      ? undefined
      : raw.trim();
  } catch {
    return undefined;
  }
}

function splitList(raw: unknown): string[] | undefined {
  if (typeof raw === "string") return raw.split(",").map((item) => item.trim());
  if (!Array.isArray(raw)) return undefined;
  const items: unknown[] = raw;
  const texts = items.filter((item) => typeof item === "string");
  return texts.length === items.length ? texts.map((item) => item.trim()) : undefined;
}
