/**
 * Views that other people built on ours, in schemas of their own. They have to go when ours are
 * built anew, and come back with everything that was said about them.
 */
import type { PoolClient } from "pg";

import { MigrationError } from "./errors.ts";

// Other people's views above ours, the number of views between them, and whatever only a person
// can bring back. Names are written out in full, whatever the search path is.
const FIND = `
with recursive above (oid, level) as (
  select c.oid, 0
    from pg_class c
   where c.relnamespace = 'tallyd'::regnamespace
     and c.relkind in ('v', 'm')
  union all
  select r.ev_class, a.level + 1
    from above a
    join pg_depend d
      on d.refclassid = 'pg_class'::regclass
     and d.refobjid = a.oid
     and d.classid = 'pg_rewrite'::regclass
    join pg_rewrite r on r.oid = d.objid
   where r.ev_class <> a.oid
), foreign_views as (
  select c.oid, max(a.level) as level
    from above a
    join pg_class c using (oid)
   where c.relnamespace <> 'tallyd'::regnamespace
   group by c.oid
)
select format('%I.%I', n.nspname, c.relname) as name,
       case
         when c.relkind <> 'v' then 'it is a materialized view'
         when exists (select from pg_trigger t where t.tgrelid = c.oid and not t.tgisinternal)
         then 'it has a trigger'
         when (select count(*) from pg_rewrite r where r.ev_class = c.oid) > 1 then 'it has a rule'
         when not pg_has_role(c.relowner, 'member')
         then 'it belongs to ' || quote_ident(pg_get_userbyid(c.relowner))
       end as obstacle,
       format('create view %I.%I%s as %s', n.nspname, c.relname,
              ' with (' || array_to_string(c.reloptions, ', ') || ')',
              pg_get_viewdef(c.oid)) as made,
       array[
         format('alter view %I.%I owner to %I', n.nspname, c.relname,
                pg_get_userbyid(c.relowner)),
         format('comment on view %I.%I is %L', n.nspname, c.relname,
                obj_description(c.oid, 'pg_class'))
       ] as said,
       array(select format('grant %s%s on %I.%I to %s%s', g.privilege_type, g.part, n.nspname,
                           c.relname, coalesce(quote_ident(r.rolname), 'public'),
                           case when g.is_grantable then ' with grant option' else '' end)
               from (select '' as part, e.grantee, e.privilege_type, e.is_grantable
                       from aclexplode(c.relacl) as e
                      union all
                     select format(' (%I)', t.attname), e.grantee, e.privilege_type, e.is_grantable
                       from pg_attribute t
                      cross join lateral aclexplode(t.attacl) as e
                      where t.attrelid = c.oid
                        and not t.attisdropped) as g
               left join pg_roles r on r.oid = g.grantee
              where g.grantee <> c.relowner
                and (g.grantee = 0 or r.rolname is not null)) as granted
  from foreign_views f
  join pg_class c using (oid)
  join pg_namespace n on n.oid = c.relnamespace
 order by f.level, name`;

interface Dependent {
  readonly name: string;
  readonly obstacle: string | null;
  readonly made: string;
  readonly said: readonly string[];
  readonly granted: readonly string[];
}

/**
 * Drops other people's views that lean on ours and notes how to make them again. Throws
 * `MigrationError` when one of them cannot be brought back by us: nothing is dropped then.
 */
export async function dropDependents(client: PoolClient): Promise<void> {
  const found = await inNoSchema(client, async () => (await client.query<Dependent>(FIND)).rows);
  for (const { name, obstacle } of found) {
    if (obstacle === null) continue;
    throw new MigrationError(
      `${name} is built on tallyd's views, which are made anew by this version, and cannot be ` +
        `taken along: ${obstacle}. Drop it, start tallyd, and create it again`,
    );
  }
  for (const { name } of found.toReversed()) await client.query(`drop view ${name}`);
  const steps = found.flatMap(({ name, made, said, granted }) =>
    [made, ...said, ...granted].map((statement) => ({ name, statement })),
  );
  await client.query(
    `insert into tallyd.derived_dependent (relation, statement)
     select relation, statement
       from unnest($1::text[], $2::text[]) with ordinality as s (relation, statement, place)
      order by place`,
    [steps.map((step) => step.name), steps.map((step) => step.statement)],
  );
}

/**
 * Makes them again. Throws `MigrationError` with the statement when one does not fit any more; it
 * stays noted, so that nothing is lost.
 */
export async function restoreDependents(client: PoolClient): Promise<void> {
  const noted = await client.query<{ relation: string; statement: string }>(
    "select relation, statement from tallyd.derived_dependent order by position",
  );
  await inNoSchema(client, async () => {
    for (const { relation, statement } of noted.rows) {
      try {
        await client.query(statement);
      } catch (error) {
        throw new MigrationError(
          `${relation}, which is built on tallyd's views, does not fit their new shape ` +
            `(${String(error)}). Take its rows out of tallyd.derived_dependent, start tallyd, ` +
            `and create it again from: ${statement}`,
          { cause: error },
        );
      }
    }
  });
  await client.query("delete from tallyd.derived_dependent");
}

/** With an empty search path PostgreSQL writes every name in full. */
async function inNoSchema<T>(client: PoolClient, work: () => Promise<T>): Promise<T> {
  const before = await client.query<{ path: string }>(
    "select current_setting('search_path') as path",
  );
  await client.query("select set_config('search_path', '', true)");
  const result = await work();
  await client.query("select set_config('search_path', $1, true)", [before.rows[0]?.path]);
  return result;
}
