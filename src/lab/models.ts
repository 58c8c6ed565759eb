/** Two designs as models: what they do with a schedule, by their rules alone. */
import { operationOf } from "./design.ts";
import type { Answer, Trace } from "./design.ts";
import { requestsOf } from "./schedule.ts";
import type { LabEvent, LabRequest, Schedule } from "./schedule.ts";

/** A design that is asked and told; its effects are counted outside of it. */
interface Model {
  readonly arrive: (request: LabRequest) => Answer;
  readonly complete: (request: string) => void;
  readonly lose: (request: string) => void;
  readonly expire: () => void;
  readonly restart: () => void;
}

/** What makes a request this one: a change of it under the same name is a conflict. */
function materialOf({ amount, destination }: LabRequest): string {
  return JSON.stringify([amount, destination]);
}

/**
 * Completed answers by (principal, key), stored durably when a request completes. It remembers what
 * is done and knows nothing of what is under way.
 */
function responseCache(): Model {
  const stored = new Map<string, string>();
  const open = new Map<string, LabRequest>();
  const nameOf = ({ principal, key }: LabRequest): string => JSON.stringify([principal, key]);
  return {
    arrive: (request) => {
      const found = stored.get(nameOf(request));
      if (found !== undefined) return found === materialOf(request) ? "replayed" : "conflict";
      open.set(request.request, request);
      return "admitted";
    },
    complete: (name) => {
      const request = open.get(name);
      if (request !== undefined) stored.set(nameOf(request), materialOf(request));
      open.delete(name);
    },
    lose: (name) => {
      open.delete(name);
    },
    expire: () => {
      stored.clear();
    },
    restart: () => {
      open.clear();
    },
  };
}

interface Operation {
  readonly material: string;
  readonly request: string;
  state: "under_way" | "done" | "in_doubt";
}

/**
 * Operations by (principal, operation), reserved before the effect and kept for good, with the keys
 * that were bound to them. Assumes durable state, atomic admission and stable names.
 */
function operationLedger(): Model {
  const operations = new Map<string, Operation>();
  const keys = new Map<string, string>();
  const end = (name: string, state: Operation["state"]): void => {
    for (const one of operations.values()) {
      if (one.request === name && one.state === "under_way") one.state = state;
    }
  };
  return {
    arrive: (request) => {
      const name = operationOf(request);
      const key = JSON.stringify([request.principal, request.key]);
      const bound = keys.get(key);
      if (bound !== undefined && bound !== name) return "conflict";
      const found = operations.get(name);
      const material = materialOf(request);
      if (found !== undefined && found.material !== material) return "conflict";
      keys.set(key, name);
      if (found !== undefined) return found.state === "done" ? "replayed" : "blocked";
      operations.set(name, { material, request: request.request, state: "under_way" });
      return "admitted";
    },
    complete: (name) => {
      end(name, "done");
    },
    lose: (name) => {
      end(name, "in_doubt");
    },
    expire: () => undefined,
    restart: () => {
      for (const one of operations.values()) {
        if (one.state === "under_way") one.state = "in_doubt";
      }
    },
  };
}

/** Runs a schedule through the cache of completed answers. */
export function runCache(schedule: Schedule): Trace {
  return play(schedule, responseCache());
}

/** Runs a schedule through the retained ledger of operations. */
export function runLedgerModel(schedule: Schedule): Trace {
  return play(schedule, operationLedger());
}

function play(schedule: Schedule, model: Model): Trace {
  const answers: Trace["answers"][number][] = [];
  const effects: Record<string, number> = {};
  for (const item of schedule.events) {
    // What arrives at once is taken in turn, before anything of it completes.
    for (const request of requestsOf(item)) {
      const answer = model.arrive(request);
      answers.push({ request: request.request, answer });
      if (answer !== "admitted") continue;
      const name = operationOf(request);
      effects[name] = (effects[name] ?? 0) + 1;
    }
    tell(model, item);
  }
  return { answers, effects, settled: null };
}

function tell(model: Model, item: LabEvent): void {
  switch (item.event) {
    case "arrive":
    case "race":
      break;
    case "complete":
      model.complete(item.request);
      break;
    case "lose":
      model.lose(item.request);
      break;
    case "expire":
      model.expire();
      break;
    case "restart":
      model.restart();
      break;
  }
}
