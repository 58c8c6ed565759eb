/** What a design is run with and what it leaves behind; and how that is counted. */
import { requestsOf } from "./schedule.ts";
import type { Counts, LabRequest, Schedule } from "./schedule.ts";

/**
 * What became of a request:
 * - `admitted`: its effect happened
 * - `replayed`: it got the stored answer of an earlier one
 * - `blocked`: it was told to wait, since an earlier one is under way or in doubt
 * - `conflict`: it was refused, since its name stands for something else
 */
export type Answer = "admitted" | "replayed" | "blocked" | "conflict";

/** A run, as it can be read line by line. */
export interface Trace {
  readonly answers: readonly { readonly request: string; readonly answer: Answer }[];
  /** How often money moved in the end, by operation (see {@link operationOf}). */
  readonly effects: Readonly<Record<string, number>>;
  /**
   * Operations that are recorded after the dust has settled; `null`: the design has no such end.
   */
  readonly settled: number | null;
}

/** The name of a logical operation: of one principal. */
export function operationOf(request: Pick<LabRequest, "principal" | "operation">): string {
  return `${request.principal}:${request.operation}`;
}

/**
 * Counts a trace of a schedule. A second effect of one operation is a duplicate, of two it is not.
 */
export function countTrace(schedule: Schedule, trace: Trace): Counts {
  const answered = (answer: Answer): number =>
    trace.answers.filter((one) => one.answer === answer).length;
  const times = Object.values(trace.effects);
  return {
    effects: times.reduce((sum, one) => sum + one, 0),
    duplicates: times.reduce((sum, one) => sum + Math.max(0, one - 1), 0),
    replayed: answered("replayed"),
    blocked: answered("blocked"),
    conflicts: answered("conflict"),
    suppressed: operationsOf(schedule).filter((one) => (trace.effects[one] ?? 0) === 0).length,
  };
}

/** Every operation that somebody wanted, once each. */
export function operationsOf(schedule: Schedule): readonly string[] {
  return [...new Set(schedule.events.flatMap(requestsOf).map(operationOf))];
}
