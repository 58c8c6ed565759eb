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

/**
 * The expected sources without a complete read within their limit. A source that was never read
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
    if (silentMs <= silentMaxMs) return [];
    return [{ source, scope, lastOkAt, lastError: row?.lastError ?? null }];
  });
}
