/** The team's table as the daemon uses it: inspected once, inspected again after trouble. */
import type { Pool } from "pg";

import type { Clock } from "../core/clock.ts";
import { ConfigError, UnreadableError } from "../core/errors.ts";
import type { Look } from "../core/finding.ts";
import type { Settings } from "../core/settings.ts";
import { inspectLocal } from "../sources/local/inspect.ts";
import { lookLocal } from "../sources/local/look.ts";
import { LOCAL_SOURCE, readChanges, sweep } from "../sources/local/pass.ts";
import type { PassResult } from "../sources/local/pass.ts";
import { placeSettings } from "../sources/local/place.ts";
import type { ReaderDeps } from "../sources/local/read-rows.ts";
import { findLackingRights } from "../sources/local/rights.ts";
import type { LackingRights, LocalShape } from "../sources/local/shape.ts";
import { getSource, markFailed } from "../store/sources.ts";
import { noteLackingRights } from "../store/tallies.ts";

/** The team's table. */
export interface LocalTable {
  /** Throws ConfigError when the table cannot be used, UnreadableError when it is out of reach. */
  readonly shape: () => Promise<LocalShape>;
  /** The shape that was found last; null: none yet. */
  readonly knownShape: () => LocalShape | null;
  /** Reads changes, or every row; a failure is noted in `tallyd.source` and thrown. */
  readonly read: (how: "changes" | "sweep") => Promise<PassResult>;
  /** True: a row carries one of the marks. */
  readonly look: (marks: Extract<Look, { source: "local" }>) => Promise<boolean>;
  /** What readers and the resolver need; after trouble call `forget`. */
  readonly reader: () => Promise<ReaderDeps>;
  /**
   * Notes which rights the resolver lacks as the catalogue has them now; a changed right is known
   * to the next write. Out of reach is no news about rights, and told by the reader.
   */
  readonly checkRights: () => Promise<void>;
  /** The table is inspected again at the next call. */
  readonly forget: () => void;
}

/** What the table is reached by. */
export interface LocalTableDeps {
  readonly own: Pool;
  readonly team: Pool;
  readonly settings: Settings;
  readonly clock: Clock;
}

/** Wraps the team's table; nothing is read before the first call. */
export function openLocalTable(deps: LocalTableDeps): LocalTable {
  const { settings } = deps;
  let shape: Promise<LocalShape> | undefined;
  let known: LocalShape | null = null;

  const inspect = async (): Promise<LocalShape> => {
    const seenBefore = known !== null || (await wasRead(deps.own));
    // A table that was there and is gone (renamed, dropped) is trouble to tell: an empty one in
    // its place would make an orphan of every payment.
    const create = settings.intents.create && !seenBefore;
    try {
      known = await inspectLocal(deps.team, { ...settings.intents, create });
    } catch (error) {
      // At the start a bad table is a bad setting; later it is a source that cannot be read.
      if (known === null || !(error instanceof ConfigError)) throw error;
      throw new UnreadableError("shape", error.message, { cause: error });
    }
    return known;
  };
  const shapeOf = (): Promise<LocalShape> => {
    shape ??= inspect();
    return shape;
  };
  const readerDeps = async (): Promise<ReaderDeps & { readonly own: Pool }> => ({
    own: deps.own,
    team: deps.team,
    shape: await shapeOf(),
    place: placeSettings(settings),
    aheadMaxMs: settings.rules.clockSlackMs,
  });
  /** After trouble the table may have changed: it is inspected again at the next call. */
  const guarded = async <T>(
    work: (reader: ReaderDeps & { own: Pool }) => Promise<T>,
  ): Promise<T> => {
    try {
      return await work(await readerDeps());
    } catch (error) {
      shape = undefined;
      throw error;
    }
  };
  return {
    shape: () => guarded((reader) => Promise.resolve(reader.shape)),
    knownShape: () => known,
    read: async (how) => {
      try {
        return await guarded((reader) => (how === "sweep" ? sweep(reader) : readChanges(reader)));
      } catch (error) {
        await noteFailure(deps, error);
        throw error;
      }
    },
    look: (marks) =>
      guarded(async (reader) => {
        const { chargeIds, keys, intentIds, references, nonces } = marks;
        const found = await lookLocal(reader, { chargeIds, keys, intentIds, references, nonces });
        return found.ids.length > 0;
      }),
    reader: readerDeps,
    checkRights: async () => {
      if (await rightsChanged(deps, known)) shape = undefined;
    },
    forget: () => {
      shape = undefined;
    },
  };
}

/**
 * Notes the rights that are lacking now. True: not those of the shape in hand, which would go on
 * refusing what was granted, or trying what was revoked.
 */
async function rightsChanged(deps: LocalTableDeps, known: LocalShape | null): Promise<boolean> {
  const { resolve, intents } = deps.settings;
  let lacking: LackingRights | null = null;
  try {
    // Only a resolver that writes needs the right to.
    if (resolve === "write") lacking = await findLackingRights(deps.team, intents);
  } catch (error) {
    if (error instanceof UnreadableError) return false;
    throw error;
  }
  await noteLackingRights(deps.own, lacking, deps.clock.now());
  return resolve === "write" && known?.lackingRights?.grant !== lacking?.grant;
}

/** Has any process of this tallyd ever read the table completely? */
async function wasRead(own: Pool): Promise<boolean> {
  return ((await getSource(own, LOCAL_SOURCE))?.lastOkAt ?? null) !== null;
}

async function noteFailure(deps: LocalTableDeps, error: unknown): Promise<void> {
  if (!(error instanceof UnreadableError)) return;
  await markFailed(deps.own, {
    ...LOCAL_SOURCE,
    code: error.code,
    message: error.message,
    at: deps.clock.now(),
  });
}
