import type { Db } from "./pool.ts";

/** One appointment: an operation and the time from which it is to be judged. */
export interface Due {
  readonly operationId: string;
  /** As text, so that microseconds survive the way through JavaScript. */
  readonly dueAt: string;
}

/** The appointments that have come, all those of at most `limit` operations, oldest first. */
export async function readDue(
  db: Db,
  input: { readonly asOf: Date; readonly limit: number },
): Promise<Due[]> {
  const result = await db.query<{ operation_id: string; due_at: string }>(
    `with operations as (
       select operation_id, min(due_at) as first_at
         from tallyd.due
        where due_at <= $1
        group by operation_id
        order by first_at
        limit $2
     )
     select d.operation_id, d.due_at::text as due_at
       from operations
       join tallyd.due d using (operation_id)
      where d.due_at <= $1`,
    [input.asOf, input.limit],
  );
  return result.rows.map((row) => ({ operationId: row.operation_id, dueAt: row.due_at }));
}

/** Removes exactly the appointments that were read: one made since then stays. */
export async function removeDue(db: Db, due: readonly Due[]): Promise<void> {
  await db.query(
    `delete from tallyd.due
      where (operation_id, due_at) in (
              select operation_id, due_at
                from unnest($1::text[], $2::timestamptz[]) as d (operation_id, due_at)
            )`,
    [due.map((row) => row.operationId), due.map((row) => row.dueAt)],
  );
}

/** Makes operations due at `at`. */
export async function addDue(
  db: Db,
  input: { readonly operationIds: readonly string[]; readonly at: Date },
): Promise<void> {
  await db.query(
    `insert into tallyd.due (operation_id, due_at)
     select operation_id, $2
       from unnest($1::text[]) as o (operation_id)
         on conflict do nothing`,
    [input.operationIds, input.at],
  );
}

/** The operations, and those of open incidents that share a charge or a row with one of them. */
export async function widenByIncidents(db: Db, operationIds: readonly string[]): Promise<string[]> {
  const result = await db.query<{ operation_id: string }>(
    `with charges as (
       select array_agg(distinct charge_id) as ids
         from tallyd.charge_match
        where operation_id = any ($1::text[])
     ), intents as (
       select array_agg(distinct intent_id) as ids
         from tallyd.intent_match
        where operation_id = any ($1::text[])
     )
     select operation_id
       from unnest($1::text[]) as o (operation_id)
      union
     select i.operation_id
       from tallyd.incident i
      cross join charges c
      cross join intents n
      where i.status <> 'closed'
        and i.operation_id is not null
        and (i.charges && c.ids or i.intents && n.ids)`,
    [operationIds],
  );
  return result.rows.map((row) => row.operation_id);
}

/**
 * Makes every operation due at `at` where there are at most `limit` of them, else those that have
 * an open incident. Answers how many.
 */
export async function addAllDue(
  db: Db,
  input: { readonly at: Date; readonly limit: number },
): Promise<number> {
  const result = await db.query(
    `with known as (
       select operation_id from tallyd.intent_match
        union
       select operation_id from tallyd.charge_match
     ), sized as (
       select count(*) <= $2 as few
         from (select from known limit $2 + 1) as first
     )
     insert into tallyd.due (operation_id, due_at)
     select k.operation_id, $1
       from known k
      cross join sized s
      where s.few
         or exists (
              select
                from tallyd.incident i
               where i.operation_id = k.operation_id
                 and i.status <> 'closed'
            )
         on conflict do nothing`,
    [input.at, input.limit],
  );
  return result.rowCount ?? 0;
}
