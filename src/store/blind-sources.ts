import type { Db } from "./pool.ts";
import { listSources } from "./sources.ts";
import type { SourceKey } from "./sources.ts";

/** A source that must be read, and how long it may go without a complete read. */
export interface ExpectedSource extends SourceKey {
  readonly silentMaxMs: number;
}

/** A source that was not read in time: nothing about its scope is known to be right. */
export interface BlindSource extends SourceKey {
  /** Null: never read. */
  readonly lastOkAt: Date | null;
  readonly lastError: string | null;
}

// One failure is weather, three in a row over some minutes are not (case B26).
const FAILURES_MIN = 3;
const FAILING_MAX_MS = 300_000;

/**
 * The expected sources without a complete read within their limit, or that fail again and again. A
 * source that was never read
 * counts from `since`, the start of this process.
 */
export async function blindSources(
  db: Db,
  input: {
    readonly expected: readonly ExpectedSource[];
    readonly now: Date;
    readonly since: Date;
  },
): Promise<BlindSource[]> {
  const rows = await listSources(db);
  return input.expected.flatMap(({ source, scope, silentMaxMs }) => {
    const row = rows.find((known) => known.source === source && known.scope === scope);
    const lastOkAt = row?.lastOkAt ?? null;
    const silentMs = input.now.getTime() - (lastOkAt ?? input.since).getTime();
    const failsMs = input.now.getTime() - (row?.failingSince ?? input.now).getTime();
    const failing = failsMs > FAILING_MAX_MS && (row?.failures ?? 0) >= FAILURES_MIN;
    if (silentMs <= silentMaxMs && !failing) return [];
    return [{ source, scope, lastOkAt, lastError: row?.lastError ?? null }];
  });
}
