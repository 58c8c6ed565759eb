/** The log of a command or daemon: one line per fact, to stderr, without secrets. */
import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import { messageOf } from "../core/message.ts";
import { visibleText } from "../core/visible.ts";
import { jsonText } from "./json.ts";

/** How much is written; each level contains the ones after it. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** A log whose level and secrets can be set once the settings are known. */
export interface CommandLog extends Log {
  readonly configure: (settings: {
    readonly level: LogLevel;
    /** Values that must never appear, see `secretsOf`. */
    readonly secrets: readonly string[];
  }) => void;
}

const RANK: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };
const REDACTED = "[redacted]";
// Replacing shorter values would tear ordinary words apart.
const SECRET_CHARS_MIN = 6;
// A line that is longer helps nobody and fills disks.
const LINE_CHARS_MAX = 16_000;
// Password in a URL, for secrets that nobody told us about (a URL inside a driver's error).
const URL_PASSWORD = /(\b[a-z][a-z0-9+.-]*:\/\/[^\s:/@]*:)[^\s@/]+@/gi;
// Shapes of secrets that are never printed even when they are not ours.
const SECRET_SHAPE = /\b(?:sk|rk|whsec)_[A-Za-z0-9_]{8,}|hooks\.slack\.com\/[^\s"']+/g;

/** Makes a log: readable lines on a terminal, one JSON object a line otherwise. */
export function createLog(options: {
  readonly write: (text: string) => void;
  readonly terminal: boolean;
  readonly clock: Clock;
}): CommandLog {
  let level: LogLevel = "info";
  let secrets: readonly string[] = [];
  const line =
    (of: LogLevel) =>
    (message: string, fields: Readonly<Record<string, unknown>> = {}): void => {
      if (RANK[of] < RANK[level]) return;
      const values = plainFields(fields, level === "debug");
      const at = options.clock.now().toISOString();
      const text = options.terminal
        ? visibleText(readable(at, of, message, values))
        : jsonText({ at, level: of, message, ...values });
      options.write(`${redact(text, secrets).slice(0, LINE_CHARS_MAX)}\n`);
    };
  return {
    debug: line("debug"),
    info: line("info"),
    warn: line("warn"),
    error: line("error"),
    configure: (settings) => {
      level = settings.level;
      secrets = settings.secrets;
    },
  };
}

/** `text` without the given secrets and without anything that looks like one. */
export function redact(text: string, secrets: readonly string[]): string {
  let clean = text;
  for (const secret of secrets) {
    if (secret.length >= SECRET_CHARS_MIN) clean = clean.replaceAll(secret, REDACTED);
  }
  return clean.replace(URL_PASSWORD, `$1${REDACTED}@`).replace(SECRET_SHAPE, REDACTED);
}

function plainFields(
  fields: Readonly<Record<string, unknown>>,
  stacks: boolean,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, plain(value, stacks)]),
  );
}

function plain(value: unknown, stacks: boolean): unknown {
  if (!(value instanceof Error)) return value;
  if (stacks && value.stack !== undefined) return value.stack;
  return messageOf(value);
}

function readable(
  at: string,
  level: LogLevel,
  message: string,
  fields: Readonly<Record<string, unknown>>,
): string {
  const pairs = Object.entries(fields).map(
    ([name, value]) => ` ${name}=${typeof value === "string" ? value : jsonText(value)}`,
  );
  return `${at.slice(11, 19)} ${level.padEnd(5)} ${message}${pairs.join("")}`;
}
