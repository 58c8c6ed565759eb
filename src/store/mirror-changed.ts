/** Objects whose row changed and that match has to place again: `tallyd.changed`. */
import type { Db } from "./pool.ts";

/** An object to place again. */
export interface ChangedObject {
  readonly kind: "intent" | "charge" | "payment_intent";
  /** Empty for rows of the team's table. */
  readonly scope: string;
  readonly id: string;
}

/** Collects each object once, however often it is named. */
export class ChangedObjects {
  readonly #objects = new Map<string, ChangedObject>();

  add(object: ChangedObject): void {
    this.#objects.set(`${object.kind}\u0000${object.scope}\u0000${object.id}`, object);
  }

  list(): readonly ChangedObject[] {
    return [...this.#objects.values()];
  }
}

/** Marks objects as changed at `now`, inside the transaction that changed them. */
export async function markChanged(
  db: Db,
  input: { readonly objects: readonly ChangedObject[]; readonly now: Date },
): Promise<void> {
  if (input.objects.length === 0) return;
  // The update, not "do nothing": whoever is just emptying the table must see that it came again.
  await db.query(
    `insert into tallyd.changed (kind, scope, id, at)
     select kind, scope, id, $2
       from jsonb_to_recordset($1::jsonb) as given (kind text, scope text, id text)
      order by kind collate "C", scope collate "C", id collate "C"
         on conflict (kind, scope, id)
            do update set at = excluded.at`,
    [JSON.stringify(input.objects), input.now],
  );
}

/** Marks charges of one scope; `ids` is an array as PostgreSQL spells it, repetitions allowed. */
export async function markChargesChanged(
  db: Db,
  input: { readonly scope: string; readonly ids: string; readonly now: Date },
): Promise<void> {
  if (input.ids === "{}") return;
  await db.query(
    `insert into tallyd.changed (kind, scope, id, at)
     select distinct on (id collate "C") 'charge', $1, id, $3
       from unnest($2::text[]) as given (id)
      order by id collate "C"
         on conflict (kind, scope, id)
            do update set at = excluded.at`,
    [input.scope, input.ids, input.now],
  );
}
