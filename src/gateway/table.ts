/** The gateway's own table: one row for each paid or keyed request. */

/** The schema that is used unless the caller names another. */
export const SCHEMA_DEFAULT = "tallyd_gateway";

// PostgreSQL cuts longer names, and two cut names could be one.
const NAME = /^[a-z_][a-z0-9_]{0,62}$/;

/** The table's quoted name. Throws a `RangeError` on a name that would need thinking about. */
export function tableName(schema: string = SCHEMA_DEFAULT): string {
  if (!NAME.test(schema)) {
    throw new RangeError(
      `schema "${schema}": lower case letters, digits and underscores are allowed, 63 at most`,
    );
  }
  return `"${schema}"."gateway_response"`;
}

/**
 * The DDL of the table and its schema; any number of runs is one. Run it in a migration of your
 * own. Throws a `RangeError` on an unusual schema name.
 */
export function gatewayTableSql(schema: string = SCHEMA_DEFAULT): string {
  const table = tableName(schema);
  return `create schema if not exists "${schema}";
create table if not exists ${table} (
  scope         text        not null,              -- tenant or route, as the caller divides them
  principal     text        not null,              -- who pays or asks; '' where nobody can say
  id            text        not null,              -- payment identifier or idempotency key
  fingerprint   text        not null check (fingerprint ~ '^[0-9a-f]{64}$'),
  auth_hash     text        check (auth_hash ~ '^[0-9a-f]{64}$'), -- null: nothing was signed
  state         text        not null check (state in ('running', 'done', 'unknown')),
  attempt       uuid        not null unique,       -- made anew by each run: who may write its end
  holder        bigint      not null,              -- session lock of the process that runs it
  was_unknown   boolean     not null default false, -- an earlier run ended nobody knows how
  status        integer     check (status between 100 and 999),
  headers       jsonb,
  body          bytea,                             -- null in state done: too large, or dropped
  created_at    timestamptz not null default now(),
  ended_at      timestamptz,
  answer_until  timestamptz not null,              -- the answer is replayed until then
  forget_at     timestamptz not null,              -- identifier and authorization are known so long
  primary key (scope, principal, id),
  check ((state = 'done') = (status is not null)),
  check (answer_until <= forget_at)
);
create unique index if not exists gateway_response_authorization
  on ${table} (auth_hash) where auth_hash is not null;
create index if not exists gateway_response_forget
  on ${table} (forget_at);
create index if not exists gateway_response_answer
  on ${table} (answer_until) where body is not null;
`;
}
