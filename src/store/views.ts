import type { PoolClient } from "pg";

import { dropDependents, restoreDependents } from "./dependents.ts";
import { MigrationError } from "./errors.ts";
import { textSha256 } from "./sql-files.ts";
import type { ViewFile } from "./sql-files.ts";

// The owner's own rights come with the view; everything else was given by somebody.
const NOTE_GRANTS = `
insert into tallyd.derived_grant (relation, part, grantee, privilege, grantable)
select given.relation, given.part, r.rolname, given.privilege_type, given.is_grantable
  from (select c.relname as relation, '' as part, c.relowner, a.*
          from pg_class c
         cross join lateral aclexplode(c.relacl) as a
         where c.relnamespace = 'tallyd'::regnamespace
           and c.relkind in ('v', 'm')
         union all
        select c.relname, t.attname, c.relowner, a.*
          from pg_class c
          join pg_attribute t on t.attrelid = c.oid and not t.attisdropped
         cross join lateral aclexplode(t.attacl) as a
         where c.relnamespace = 'tallyd'::regnamespace
           and c.relkind in ('v', 'm')) as given
  left join pg_roles r on r.oid = given.grantee
 where given.grantee <> given.relowner
   -- 0 is everybody; another number without a name is a role that is gone.
   and (given.grantee = 0 or r.rolname is not null)`;

// A view, a column or a role that is gone by now takes its grants along.
const GIVE_GRANTS = `
do $give$
declare
  item record;
begin
  for item in
    select format('grant %s%s on tallyd.%I to %s%s', g.privilege,
                  case g.part when '' then '' else format(' (%I)', g.part) end, g.relation,
                  coalesce(quote_ident(g.grantee), 'public'),
                  case when g.grantable then ' with grant option' else '' end) as statement
      from tallyd.derived_grant g
      join pg_class c
        on c.relnamespace = 'tallyd'::regnamespace
       and c.relname = g.relation
       and c.relkind in ('v', 'm')
     where (g.part = ''
            or exists (select from pg_attribute t
                        where t.attrelid = c.oid and t.attname = g.part and not t.attisdropped))
       and (g.grantee is null or exists (select from pg_roles r where r.rolname = g.grantee))
  loop
    execute item.statement;
  end loop;
  delete from tallyd.derived_grant;
end
$give$`;

// Everything derived is found in the catalogue, not in a list of ours that could be wrong: all
// views of the schema, and the functions noted in tallyd.derived_function when they were built.
const DROP_DERIVED = `
do $drop$
declare
  item record;
begin
  for item in
    select format('%I.%I', 'tallyd', c.relname) as name,
           case c.relkind when 'm' then 'materialized view' else 'view' end as kind
      from pg_class c
     where c.relnamespace = 'tallyd'::regnamespace
       and c.relkind in ('v', 'm')
     order by c.oid desc
  loop
    -- Views of the schema alone may lean on it: those of others are gone by now.
    execute format('drop %s if exists %s cascade', item.kind, item.name);
  end loop;
  for item in
    select f.signature from tallyd.derived_function f order by f.position desc
  loop
    -- No cascade: a table that leans on such a function must fail here, not lose a column.
    execute format('drop routine if exists %s', item.signature);
  end loop;
  delete from tallyd.derived_function;
end
$drop$`;

// What stands in the catalogue now, as one hash: a view replaced by hand changes it, and so does a
// restored dump, whose views are then built once more. The rule's row version stands for its text,
// which takes the server long to write out and every command line would wait for.
const CATALOGUE_HASH = `
select md5(coalesce(string_agg(part, E'\\n' order by part), '')) as hash
  from (select c.relname || ':' || r.oid || ':' || r.xmin as part
          from pg_class c
          join pg_rewrite r on r.ev_class = c.oid
         where c.relnamespace = 'tallyd'::regnamespace
           and c.relkind in ('v', 'm')
        union all
        select f.signature || ':' || coalesce(md5(p.prosrc || coalesce(p.prosqlbody::text, '')), '')
          from tallyd.derived_function f
          left join pg_proc p on p.oid = to_regprocedure(f.signature)) as parts`;

const FUNCTIONS = `
select p.oid::regprocedure::text as signature
  from pg_proc p
 where p.pronamespace = 'tallyd'::regnamespace
 order by p.oid`;

/**
 * Drops every view of the schema and every function that the view files made. What was granted on
 * the views, and views of others built on them, are kept for {@link rebuildViews}, which may come
 * in a later transaction.
 */
export async function dropViews(client: PoolClient): Promise<void> {
  await client.query(NOTE_GRANTS);
  await dropDependents(client);
  await client.query(DROP_DERIVED);
}

/**
 * True when the views in the schema are exactly what these files built. A start of one more
 * replica then takes no lock that a running audit would hold up.
 */
export async function viewsAreCurrent(
  client: PoolClient,
  files: readonly ViewFile[],
): Promise<boolean> {
  const stored = await client.query<{ files_sha256: string; catalogue_hash: string }>(
    "select files_sha256, catalogue_hash from tallyd.derived_state",
  );
  const row = stored.rows[0];
  if (row?.files_sha256 !== filesSha256(files)) return false;
  return row.catalogue_hash === (await catalogueHash(client));
}

/**
 * Drops the views and builds them anew from the files with what was granted on them, inside the
 * caller's transaction.
 */
export async function rebuildViews(client: PoolClient, files: readonly ViewFile[]): Promise<void> {
  await dropViews(client);
  const before = new Set(await functionSignatures(client));
  for (const file of files) {
    try {
      await client.query(file.text);
    } catch (error) {
      throw new MigrationError(`sql/views/${file.name} failed: ${String(error)}`, { cause: error });
    }
  }
  await client.query(GIVE_GRANTS);
  await restoreDependents(client);
  const made = (await functionSignatures(client)).filter((name) => !before.has(name));
  await client.query(
    `insert into tallyd.derived_function (position, signature)
     select position, signature from unnest($1::text[]) with ordinality as f (signature, position)`,
    [made],
  );
  await client.query("delete from tallyd.derived_state");
  await client.query(
    "insert into tallyd.derived_state (files_sha256, catalogue_hash) values ($1, $2)",
    [filesSha256(files), await catalogueHash(client)],
  );
}

async function functionSignatures(client: PoolClient): Promise<string[]> {
  const found = await client.query<{ signature: string }>(FUNCTIONS);
  return found.rows.map((row) => row.signature);
}

async function catalogueHash(client: PoolClient): Promise<string> {
  const found = await client.query<{ hash: string }>(CATALOGUE_HASH);
  return found.rows[0]?.hash ?? "";
}

function filesSha256(files: readonly ViewFile[]): string {
  return textSha256(JSON.stringify(files.map((file) => [file.name, textSha256(file.text)])));
}
