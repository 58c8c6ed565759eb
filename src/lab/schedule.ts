/** Event schedules: what arrives, completes, gets lost, in a fixed order. Read from a JSON file. */
import { z } from "zod";

import { ConfigError } from "../core/errors.ts";

// A file of a person, not of a generator: more is a mistake.
const SCHEDULES_MAX = 100;
const EVENTS_MAX = 200;
const NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const NAME_RULE = "1 to 64 of a-z, 0-9, _ and -, a letter or digit first";
// As long as a Stripe description and a key may be, and far longer than anybody needs.
const TEXT_MAX = 255;

const AMOUNT_RULE = "whole minor units above zero, at most 8 digits, as a string";

const name = z.string().regex(NAME, NAME_RULE);
const text = z.string().min(1).max(TEXT_MAX);

const request = z.strictObject({
  request: name,
  principal: name,
  operation: name,
  key: text,
  amount: z
    .string(AMOUNT_RULE)
    .regex(/^[1-9]\d{0,7}$/, AMOUNT_RULE)
    .default("500"),
  destination: text.default("shop"),
});

const event = z.discriminatedUnion("event", [
  request.extend({ event: z.literal("arrive") }),
  z.strictObject({ event: z.literal("race"), requests: z.array(request).min(2).max(8) }),
  z.strictObject({ event: z.literal("complete"), request: name }),
  z.strictObject({ event: z.literal("lose"), request: name }),
  z.strictObject({ event: z.literal("expire") }),
  z.strictObject({ event: z.literal("restart") }),
]);

const count = z.int().min(0);
const counts = z.strictObject({
  ...{ effects: count, duplicates: count, replayed: count, blocked: count },
  ...{ conflicts: count, suppressed: count },
});
const expected = counts.partial();

const schedule = z.strictObject({
  name,
  about: z.string().max(400).default(""),
  events: z.array(event).min(1).max(EVENTS_MAX),
  /** What a design should come to; what is left out is not held against it. */
  expect: z
    .strictObject({ cache: expected, ledger_model: expected, ledger: expected })
    .partial()
    .default({}),
});

const file = z.strictObject({ schedules: z.array(schedule).min(1).max(SCHEDULES_MAX) });

/** One request as it arrives. */
export type LabRequest = Readonly<z.infer<typeof request>>;
/**
 * - `arrive`: a request; if it is admitted, its effect happens at once and its completion is open
 * - `race`: several at the same time
 * - `complete`: the result of an admitted request is stored
 * - `lose`: its effect happened and its result never comes
 * - `expire`: answers and keys past their retention are gone
 * - `restart`: the processes are killed; what is not stored is gone
 */
export type LabEvent = Readonly<z.infer<typeof event>>;
/** What a design came to. */
export type Counts = Readonly<z.infer<typeof counts>>;
/** The designs, by the names of the file. */
export type DesignName = "cache" | "ledger_model" | "ledger";
/** A schedule. */
export interface Schedule {
  readonly name: string;
  readonly about: string;
  readonly events: readonly LabEvent[];
  readonly expect: { readonly [D in DesignName]?: Expected | undefined };
}
/** Numbers that a design should come to. */
export type Expected = { readonly [K in keyof Counts]?: number | undefined };

/** Reads schedules from the text of a file. Throws ConfigError with every fault. */
export function parseSchedules(source: string, from: string): readonly Schedule[] {
  let value: unknown;
  try {
    value = JSON.parse(source);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ConfigError([`${from} is not JSON (${why}); allowed: {"schedules": […]}`], {
      cause: error,
    });
  }
  const parsed = file.safeParse(value);
  if (!parsed.success) {
    const faults = parsed.error.issues.map(({ path, message }) => `${at(path)}: ${message}`);
    throw new ConfigError(faults.map((fault) => `${from}: ${fault}`));
  }
  const { schedules } = parsed.data;
  const faults = [...doubles(schedules), ...schedules.flatMap(orderFaults)];
  if (faults.length > 0) throw new ConfigError(faults.map((fault) => `${from}: ${fault}`));
  return schedules;
}

function at(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "the file";
  return path
    .map((one) => (typeof one === "number" ? `[${one}]` : `.${String(one)}`))
    .join("")
    .replace(/^\./, "");
}

function doubles(schedules: readonly Schedule[]): string[] {
  const names = schedules.map((one) => one.name);
  return [...new Set(names.filter((one, index) => names.indexOf(one) !== index))].map(
    (one) => `schedule ${one} is there twice: give each a name of its own`,
  );
}

/** An end names a request that arrived before and has not ended; a name stands for one request. */
function orderFaults(one: Schedule): string[] {
  const open = new Set<string>();
  const seen = new Set<string>();
  const faults: string[] = [];
  one.events.forEach((item, index) => {
    const where = `schedule ${one.name}, event ${String(index + 1)}`;
    for (const arriving of requestsOf(item)) {
      if (seen.has(arriving.request)) {
        faults.push(
          `${where}: request ${arriving.request} arrived before; name this one otherwise`,
        );
      }
      seen.add(arriving.request);
      open.add(arriving.request);
    }
    if (item.event === "restart") open.clear();
    if (item.event !== "complete" && item.event !== "lose") return;
    if (!open.delete(item.request)) {
      faults.push(`${where}: request ${item.request} is not open: it has to arrive, and ends once`);
    }
  });
  return faults;
}

/** The requests that arrive with an event. */
export function requestsOf(item: LabEvent): readonly LabRequest[] {
  if (item.event === "race") return item.requests;
  return item.event === "arrive" ? [item] : [];
}
