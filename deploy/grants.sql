-- Roles and rights of tallyd, for databases where the daemon must not be a superuser.
-- Plain SQL, safe to run again. As a role that may create roles and owns the team's table:
--
--   psql "$ADMIN_URL" \
--     -c "set tallyd.intents_table = 'public.payment_intents'" \
--     -f deploy/grants.sql
--   psql "$ADMIN_URL" -c '\password tallyd_owner'
--
-- tallyd_owner   the daemon: owns the schema tallyd, reads the team's table, writes the five
--                columns that a resolution may set, and nothing else
-- tallyd_reader  people and dashboards: reads the schema tallyd, writes nothing
--
-- With RESOLVE=suggest or off, leave the last block out: tallyd then cannot write there at all.
-- When the team's table is in another database, run the first half here and the second there.

do $roles$
begin
  if not exists (select from pg_roles where rolname = 'tallyd_owner') then
    create role tallyd_owner login;
  end if;
  if not exists (select from pg_roles where rolname = 'tallyd_reader') then
    create role tallyd_reader nologin;
  end if;
end
$roles$;

-- tallyd's own schema. It creates nothing outside of it.
do $schema$
begin
  -- Without being a member, an admin that is no superuser may not give a schema away.
  if not pg_has_role(current_user, 'tallyd_owner', 'member') then
    execute format('grant tallyd_owner to %I', current_user);
  end if;
end
$schema$;
create schema if not exists tallyd authorization tallyd_owner;
grant usage on schema tallyd to tallyd_reader;
grant select on all tables in schema tallyd to tallyd_reader;
-- Tables and views that later versions bring are readable too.
alter default privileges for role tallyd_owner in schema tallyd
  grant select on tables to tallyd_reader;

-- The team's table: every column may be read.
do $read$
declare
  relation regclass := coalesce(
    nullif(current_setting('tallyd.intents_table', true), ''), 'public.payment_intents');
  schema_name text := (select n.nspname
                         from pg_class c
                         join pg_namespace n on n.oid = c.relnamespace
                        where c.oid = relation);
begin
  execute format('grant usage on schema %I to tallyd_owner', schema_name);
  execute format('grant select on %s to tallyd_owner', relation);
end
$read$;

-- The team's table: the columns that a resolution sets, as far as the table has them. With a
-- mapping, name the columns of intents.write here instead.
do $write$
declare
  relation regclass := coalesce(
    nullif(current_setting('tallyd.intents_table', true), ''), 'public.payment_intents');
  columns text := (select string_agg(format('%I', a.attname), ', ' order by a.attnum)
                     from pg_attribute a
                    where a.attrelid = relation
                      and not a.attisdropped
                      and a.attname in ('state', 'charge_id', 'response_json', 'fingerprint',
                                        'updated_at'));
begin
  if columns is not null then
    execute format('grant update (%s) on %s to tallyd_owner', columns, relation);
  end if;
end
$write$;
