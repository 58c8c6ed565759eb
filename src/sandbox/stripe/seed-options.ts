import type { Job } from "./job.ts";
import type { Cause } from "./records.ts";
import { spaceOf } from "./world.ts";
import type { World } from "./world.ts";

/** Where a seeded object lives and what its events say. */
export interface SeedOptions {
  /** Default the platform account. */
  readonly account?: string;
  /** Default false. */
  readonly livemode?: boolean;
  /** Whether the events of its life are made too; default true. */
  readonly events?: boolean;
  /** The key and the request that its events name; default none. */
  readonly idempotencyKey?: string | null;
  readonly requestId?: string | null;
}

/** Any fields of a record that may be decided by the one who seeds. */
export type Fields<T> = Partial<Omit<T, "object" | "livemode">>;

/** The job that seeding works as. */
export function jobFor(world: World, options: SeedOptions): Job {
  const cause: Cause = {
    requestId: options.requestId ?? (options.idempotencyKey ? world.ids.next("req") : null),
    idempotencyKey: options.idempotencyKey ?? null,
  };
  const account = options.account ?? world.platform;
  const space = spaceOf(world, account, options.livemode ?? false);
  return { world, space, cause, version: world.apiVersion };
}

const OPTION_NAMES: readonly string[] = [
  "account",
  "livemode",
  "events",
  "idempotencyKey",
  "requestId",
] satisfies (keyof SeedOptions)[];

/** Drops what is about the seeding and not about the object, and the field named in `also`. */
export function fieldsOnly<T extends SeedOptions, K extends keyof T & string = never>(
  seed: T,
  also?: K,
): Omit<T, keyof SeedOptions | K> {
  const fields = Object.entries(seed).filter(
    ([name]) => name !== also && !OPTION_NAMES.includes(name),
  );
  return Object.fromEntries(fields) as Omit<T, keyof SeedOptions | K>;
}
