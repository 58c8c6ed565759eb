/** What the readers of the four kinds of objects share: their context and their result. */
import type { Fact, Version } from "../../core/facts.ts";
import type { MarkSettings } from "./marks.ts";
import { describeIssues, stubSchema } from "./wire.ts";
import type { z } from "zod";

/** How and where an object came to us. */
export interface ReadContext {
  readonly scope: string;
  readonly settings: MarkSettings;
  readonly versionAt: Date;
  /** Type of the event that carried the object; null: it was fetched or listed. */
  readonly eventType: string | null;
}

/** An id that must be fetched, and why. */
export interface Refetch {
  readonly id: string;
  readonly reason: string;
}

/** A part of a reading. */
export interface Part {
  readonly facts: readonly Fact[];
  readonly refetch: readonly Refetch[];
  /** Why the object itself could not be read; null when it could. */
  readonly unreadable: string | null;
}

// The refetch table keeps 200 characters of a reason.
const REASON_MAX = 200;

/** The version of a fact of this rank. */
export function versionOf(context: ReadContext, rank: number): Version {
  return { versionAt: context.versionAt, versionRank: rank };
}

/** No fact: the object is refetched under `id`, when it has one. */
export function unreadable(id: string | null, why: string): Part {
  const reason = why.slice(0, REASON_MAX);
  return { facts: [], refetch: id === null ? [] : [{ id, reason }], unreadable: reason };
}

/** The same for an object whose shape was refused by its schema. */
export function unreadableShape(object: unknown, error: z.ZodError): Part {
  const stub = stubSchema.safeParse(object);
  const kind = stub.success ? stub.data.object : "object";
  return unreadable(
    stub.success ? stub.data.id : null,
    `${kind} of unknown shape: ${describeIssues(error)}`,
  );
}

/** Parts of nested objects, joined; their unreadable ones are refetched on their own. */
export function joinParts(own: Part, nested: readonly Part[]): Part {
  return {
    facts: [...own.facts, ...nested.flatMap((part) => part.facts)],
    refetch: [...own.refetch, ...nested.flatMap((part) => part.refetch)],
    unreadable: own.unreadable,
  };
}
