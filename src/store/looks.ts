import type { Db } from "./pool.ts";

/** A direct look at a system of record. */
export interface DirectLook {
  readonly source: "local" | "stripe";
  readonly scope: string;
  /** The id, or the marks in a fixed order, that were looked up; at most 600 characters. */
  readonly subject: string;
}

/** When a subject was last looked up and whether it was there. */
export interface LookResult {
  readonly lookedAt: Date;
  readonly found: boolean;
}

/** Notes a look. The newest one counts; an older one that arrives late changes nothing. */
export async function recordLook(db: Db, look: DirectLook & LookResult): Promise<void> {
  await db.query(
    `insert into tallyd.look as l (source, scope, subject, looked_at, found)
     values ($1, $2, $3, $4, $5)
     on conflict (source, scope, subject) do update
       set looked_at = excluded.looked_at,
           found = excluded.found
     where l.looked_at <= excluded.looked_at`,
    [look.source, look.scope, look.subject, look.lookedAt, look.found],
  );
}

/** The newest look at a subject; `null`: nobody looked. */
export async function latestLook(db: Db, look: DirectLook): Promise<LookResult | null> {
  const found = await db.query<{ looked_at: Date; found: boolean }>(
    `select looked_at, found
       from tallyd.look
      where source = $1
        and scope = $2
        and subject = $3`,
    [look.source, look.scope, look.subject],
  );
  const row = found.rows[0];
  return row === undefined ? null : { lookedAt: row.looked_at, found: row.found };
}

/** Forgets looks older than `before`: a proof names its time, and stale ones prove nothing. */
export async function pruneLooks(
  db: Db,
  input: { readonly before: Date; readonly limit: number },
): Promise<number> {
  const done = await db.query(
    `delete from tallyd.look
      where (source, scope, subject) in (
              select source, scope, subject
                from tallyd.look
               where looked_at < $1
               limit $2)`,
    [input.before, input.limit],
  );
  return done.rowCount ?? 0;
}
