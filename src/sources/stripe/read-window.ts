import { UnreadableError } from "../../core/errors.ts";
import type { ListPage, ListResource, StripeReader } from "./client.ts";
import type { Batch, SecondRange } from "./page-sink.ts";
import { createPageSink } from "./page-sink.ts";
import type { StripeObject } from "./stripe-object.ts";

/** A closed window of a list: its upper bound is fixed before the first page is asked for. */
export interface Window extends SecondRange {
  readonly scope: string;
  readonly resource: ListResource;
  /** Events only. */
  readonly types?: readonly string[];
  /** Charges only: the attempts of one payment intent. */
  readonly paymentIntent?: string;
}

/** What was read of a window; an object that stands on two pages counts twice. */
export interface WindowCounts {
  readonly objects: number;
  readonly pages: number;
}

/** What a reader of windows needs. */
export interface WindowDeps {
  readonly client: Pick<StripeReader, "list">;
  /** Stops between two pages; what is stored stays. */
  readonly signal?: AbortSignal;
}

// A part of a window is closed after this many pages, so that a crash costs 5,000 objects of
// re-reading at most, and the one page that is read twice at each edge costs 2 %.
const PAGES_PER_PART_MAX = 50;
// 100 million objects in one window: far above any account, far below for ever.
const PAGES_PER_WINDOW_MAX = 1_000_000;
// "Empty, but there is more" has been seen from busy seconds (case B24); it may pass.
const EMPTY_TRIES_MAX = 3;
// The object that the walk stood on can be deleted once, in theory; again and again is a fault.
const RESTARTS_MAX = 3;

/** Where a walk stands inside a window. */
interface Position {
  /** Upper bound of the part that is being read. */
  readonly partTo: number;
  readonly startingAfter: string | null;
  readonly pagesInPart: number;
  readonly reached: number;
  /** Do all pages of this part run from new to old? Only then may it be closed early. */
  readonly ordered: boolean;
  readonly cursorsOfSecond: ReadonlySet<string>;
  readonly restarts: number;
}

/**
 * Reads a window newest first, page by page, and hands the pages to `store` in that order; more
 * are fetched while some are stored. A batch that completes a range says so in `closed`: the whole
 * window at its end, or its newer part after a bounded number of pages. The second at such an edge
 * is read again without a cursor, since it may go on beyond the page (case B24).
 *
 * Throws UnreadableError; ranges that were not closed are not read, whatever was stored of them.
 */
export async function readWindow(
  deps: WindowDeps,
  window: Window,
  store: (batch: Batch) => Promise<void>,
): Promise<WindowCounts> {
  const sink = createPageSink(store);
  try {
    return await readPages(deps, window, sink.put);
  } finally {
    // Also after a failed fetch: what is being stored must not outlive this call.
    await sink.end();
  }
}

async function readPages(
  deps: WindowDeps,
  window: Window,
  put: (batch: Batch) => Promise<void>,
): Promise<WindowCounts> {
  const counts = { objects: 0, pages: 0 };
  let position: Position | null = window.from < window.to ? startOf(window.to, window.to) : null;
  while (position !== null) {
    if (counts.pages >= PAGES_PER_WINDOW_MAX) {
      throw lie(window, `more than ${String(PAGES_PER_WINDOW_MAX)} pages in one window`);
    }
    const page = await fetchPage(deps, window, position);
    deps.signal?.throwIfAborted();
    counts.pages += 1;
    const step: Step = advance(window, position, page);
    position = step.next;
    if (step.batch === null) continue;
    counts.objects += step.batch.objects.length;
    await put(step.batch);
  }
  return counts;
}

function startOf(partTo: number, reached: number): Position {
  return {
    partTo,
    startingAfter: null,
    pagesInPart: 0,
    reached,
    ordered: true,
    cursorsOfSecond: new Set(),
    restarts: 0,
  };
}

async function fetchPage(deps: WindowDeps, window: Window, at: Position): Promise<ListPage> {
  for (let tries = 0; tries < EMPTY_TRIES_MAX; tries += 1) {
    const page = await deps.client.list(window.scope, window.resource, {
      created: { from: window.from, to: at.partTo },
      ...(at.startingAfter === null ? {} : { startingAfter: at.startingAfter }),
      ...(window.types === undefined ? {} : { types: window.types }),
      ...(window.paymentIntent === undefined ? {} : { paymentIntent: window.paymentIntent }),
    });
    if (page.kind !== "page" || page.objects.length > 0 || !page.hasMore) return page;
  }
  throw lie(window, "an empty page that says there is more");
}

interface Step {
  readonly batch: Batch | null;
  /** `null`: the window is completely read. */
  readonly next: Position | null;
}

function advance(window: Window, at: Position, page: ListPage): Step {
  if (page.kind === "cursor_gone") {
    if (at.restarts >= RESTARTS_MAX) throw lie(window, "cursors that vanish again and again");
    return { batch: null, next: { ...startOf(at.partTo, at.reached), restarts: at.restarts + 1 } };
  }
  const { objects, readAt } = page;
  const last = objects.at(-1);
  if (!page.hasMore || last === undefined) {
    const closed = { from: window.from, to: at.partTo };
    return { batch: { objects, pages: 1, readAt, closed, reached: window.from }, next: null };
  }
  const seconds = objects.map((object) => createdOf(window, object));
  const lowest = Math.min(at.reached, ...seconds);
  const pagesInPart = at.pagesInPart + 1;
  const ordered = at.ordered && runsDown([at.reached, ...seconds]);
  if (ordered && pagesInPart >= PAGES_PER_PART_MAX && lowest + 1 < at.partTo) {
    const closed = { from: lowest + 1, to: at.partTo };
    return {
      batch: { objects, pages: 1, readAt, closed, reached: lowest },
      next: startOf(lowest + 1, lowest),
    };
  }
  // Within one second only ids can tell that the walk moves; the set starts anew at each second.
  const known = lowest < at.reached ? new Set<string>() : at.cursorsOfSecond;
  if (known.has(last.id)) throw lie(window, `the page after ${last.id} again and again`);
  return {
    batch: { objects, pages: 1, readAt, closed: null, reached: lowest },
    next: {
      ...at,
      startingAfter: last.id,
      pagesInPart,
      reached: lowest,
      ordered,
      cursorsOfSecond: new Set([...known, last.id]),
    },
  };
}

function createdOf(window: Window, object: StripeObject): number {
  const created = object["created"];
  if (typeof created === "number" && Number.isSafeInteger(created)) return created;
  throw lie(window, `${object.id} without created in whole seconds`);
}

function runsDown(seconds: readonly number[]): boolean {
  return seconds.every((second, index) => index === 0 || second <= (seconds[index - 1] ?? second));
}

function lie(window: Window, seen: string): UnreadableError {
  return new UnreadableError(
    "shape",
    `${window.resource} of ${window.scope}: the list gives ${seen}; it cannot be proven ` +
      "complete, so nothing of this window counts as read",
  );
}
