/**
 * The eight schedules that retried payments meet in the field, and what designs come to in them.
 */
import type { Expected, LabEvent, LabRequest, Schedule } from "./schedule.ts";

function request(name: string, more: Partial<LabRequest> = {}): LabRequest {
  return {
    ...{ request: name, principal: "alice", operation: "order-1", key: "key-1" },
    ...{ amount: "500", destination: "shop" },
    ...more,
  };
}

const arrive = (name: string, more: Partial<LabRequest> = {}): LabEvent => ({
  event: "arrive",
  ...request(name, more),
});
const complete = (request: string): LabEvent => ({ event: "complete", request });
const lose = (request: string): LabEvent => ({ event: "lose", request });

const none = {
  ...{ effects: 1, duplicates: 0, replayed: 0, blocked: 0, conflicts: 0, suppressed: 0 },
} as const;
const TWICE: Expected = { ...none, effects: 2, duplicates: 1 };
const REPLAYED: Expected = { ...none, replayed: 1 };
const BLOCKED: Expected = { ...none, blocked: 1 };
const CONFLICT: Expected = { ...none, conflicts: 1 };
// Two operations, two effects: the control that a design which blocks everything would fail.
const BOTH: Expected = { ...none, effects: 2 };

/** The schedules. `expect` of `ledger` is what the real one has to come to. */
export const SCHEDULES: readonly Schedule[] = [
  {
    name: "serial_retry",
    about: "A retry after the first answer was stored.",
    events: [arrive("first"), complete("first"), arrive("retry"), complete("retry")],
    expect: { cache: REPLAYED, ledger_model: REPLAYED, ledger: REPLAYED },
  },
  {
    name: "overlapping_arrivals",
    about: "Two workers at once, before any answer is stored.",
    events: [
      { event: "race", requests: [request("first"), request("second")] },
      complete("first"),
      complete("second"),
    ],
    expect: { cache: TWICE, ledger_model: BLOCKED, ledger: BLOCKED },
  },
  {
    name: "lost_completion",
    about: "The effect happened and its answer was lost on the way; then a retry.",
    events: [arrive("first"), lose("first"), arrive("retry"), complete("retry")],
    // The real ledger looks the lost answer up, and so can replay where the model blocks.
    expect: { cache: TWICE, ledger_model: BLOCKED, ledger: REPLAYED },
  },
  {
    name: "expired_retention",
    about: "A retry after answers and keys are past their retention.",
    events: [arrive("first"), complete("first"), { event: "expire" }, arrive("retry")],
    expect: { cache: TWICE, ledger_model: REPLAYED, ledger: REPLAYED },
  },
  {
    name: "regenerated_key",
    about: "The retry comes with a new key: the agent forgot the first one.",
    events: [arrive("first"), complete("first"), arrive("retry", { key: "key-2" })],
    expect: { cache: TWICE, ledger_model: REPLAYED, ledger: REPLAYED },
  },
  {
    name: "changed_destination",
    about: "The same key and operation, paid to somebody else.",
    events: [arrive("first"), complete("first"), arrive("changed", { destination: "other" })],
    expect: { cache: CONFLICT, ledger_model: CONFLICT, ledger: CONFLICT },
  },
  {
    name: "two_principals",
    about: "Two principals with one key and one name of the operation: two purchases.",
    events: [
      ...[arrive("first"), complete("first")],
      ...[arrive("other", { principal: "bob" }), complete("other")],
    ],
    expect: { cache: BOTH, ledger_model: BOTH, ledger: BOTH },
  },
  {
    name: "process_restart",
    about: "The process is killed between the effect and the record of it; then a retry.",
    events: [arrive("first"), { event: "restart" }, arrive("retry")],
    expect: { cache: TWICE, ledger_model: BLOCKED, ledger: BLOCKED },
  },
];
