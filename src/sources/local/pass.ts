import type { Pool } from "pg";

import type { RowFault } from "../../core/intent.ts";
import { countIntents, dropStaleFaults, saveFaults, upsertIntents } from "../../store/intents.ts";
import { getSource, markOk, saveProgress } from "../../store/sources.ts";
import { withTx } from "../../store/tx.ts";
import { countWithoutId } from "./count-without-id.ts";
import { readAllRows, readChangedRows } from "./read-rows.ts";
import type { ReaderDeps, RowPage } from "./read-rows.ts";
import { findVanished } from "./vanished.ts";

/** What a pass over the team's table needs. */
export interface PassDeps extends ReaderDeps {
  /** Pool of tallyd's own database. */
  readonly own: Pool;
  /** Rows of a page; for tests. */
  readonly pageRows?: number;
}

/** What a pass did. */
export interface PassResult {
  readonly mode: "changes" | "sweep";
  readonly read: number;
  /** Ids of rows that are new or differ. */
  readonly changed: number;
  readonly vanished: readonly string[];
  /** Rows that are set aside or kept with a remark; the first hundred of them. */
  readonly faults: readonly RowFault[];
  readonly faulty: number;
  /** ISO 8601: everything changed before this is read. */
  readonly provenTo: string;
}

/** The local table as a source. */
export const LOCAL_SOURCE = { source: "local", scope: "local" } as const;

// A transaction that sets its time of change and commits later than this is found by the next
// sweep; so is a writer whose clock is further behind. Two minutes of rows are cheap to read again.
export const OVERLAP_MS = 120_000;
// Enough for a person to see the pattern; the table of faults has all of them.
const FAULTS_SHOWN_MAX = 100;

/**
 * Reads what changed since the last pass, with an overlap. The first pass, and every pass over a
 * table without a time of change, is a sweep.
 */
export async function readChanges(deps: PassDeps): Promise<PassResult> {
  const bookmark = (await getSource(deps.own, LOCAL_SOURCE))?.cursor["readTo"];
  if (typeof bookmark !== "string" || deps.shape.fields.updatedAt === null) return sweep(deps);
  const since = minusOverlap(bookmark);
  const pages = readChangedRows(deps, { since, ...pageRows(deps) });
  const result = await storePages(deps, { mode: "changes", from: since, pages });
  // The clock of the team's database was set back: its changes now lie before the bookmark.
  return result.provenTo < since ? sweep(deps) : result;
}

/**
 * Reads every row: finds rows that changed without a new time of change, and rows that are gone.
 */
export async function sweep(deps: PassDeps): Promise<PassResult> {
  const pages = readAllRows(deps, pageRows(deps));
  return storePages(deps, { mode: "sweep", from: EPOCH, pages });
}

const EPOCH = new Date(0).toISOString();

interface PagesInput {
  readonly mode: PassResult["mode"];
  readonly from: string;
  readonly pages: AsyncGenerator<RowPage>;
}

async function storePages(deps: PassDeps, input: PagesInput): Promise<PassResult> {
  const faults: RowFault[] = [];
  let [read, changed, faulty, mirrored] = [0, 0, 0, 0];
  let first: string | null = null;
  for await (const page of input.pages) {
    // The oldest snapshot bounds what is proven: later pages may only show more.
    first ??= page.snapshotAt;
    read += page.ids.length;
    mirrored += page.rows.length;
    faulty += page.faults.length;
    faults.push(...page.faults.slice(0, FAULTS_SHOWN_MAX - faults.length));
    changed += await storePage(deps.own, page);
  }
  if (first === null) throw new RangeError("a read of the team's table gave no page at all");
  let vanished: readonly string[] = [];
  if (input.mode === "sweep") {
    // Equal counts mean equal sets: all rows of the sweep are in the mirror.
    const known = await countIntents(deps.own);
    if (known > BigInt(mirrored)) vanished = await findVanished(deps);
    await dropStaleFaults(deps.own, first);
    const without = await countWithoutId(deps);
    if (without !== null) faults.push(without);
  }
  // A sweep saw every row there was; a look for changes may have missed what was not committed yet.
  const provenTo = input.mode === "sweep" ? first : minusOverlap(first);
  await finish(deps, { from: input.from, first, provenTo });
  return {
    mode: input.mode,
    read,
    changed,
    vanished,
    faults,
    faulty: faults.length < faulty ? faulty : faults.length,
    provenTo,
  };
}

async function storePage(own: Pool, page: RowPage): Promise<number> {
  return withTx(own, async (tx) => {
    const { changed } = await upsertIntents(tx, page);
    await saveFaults(tx, { ids: page.ids, faults: page.faults, at: page.snapshotAt });
    return changed.length;
  });
}

/** The bookmark moves when every page is stored; a pass that broke off is read again. */
async function finish(
  deps: PassDeps,
  input: { readonly from: string; readonly first: string; readonly provenTo: string },
): Promise<void> {
  const range = { from: new Date(input.from), to: new Date(input.provenTo) };
  await withTx(deps.own, async (tx) => {
    await saveProgress(tx, {
      ...LOCAL_SOURCE,
      cursor: { readTo: input.first },
      coveredRange: range.from < range.to ? range : null,
    });
    await markOk(tx, { ...LOCAL_SOURCE, at: new Date(input.first) });
  });
}

/** Whole milliseconds are enough here: cutting them only makes the overlap larger. */
function minusOverlap(iso: string): string {
  return new Date(new Date(iso).getTime() - OVERLAP_MS).toISOString();
}

function pageRows(deps: PassDeps): { readonly pageRows?: number } {
  return deps.pageRows === undefined ? {} : { pageRows: deps.pageRows };
}
