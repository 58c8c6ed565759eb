import type { Pool } from "pg";

import type { Check } from "./check.ts";
import { fine, told, unreadable } from "./check.ts";

/** A pool, or why it could not be opened. */
export type Opened = Pool | Error;

// PostgreSQL 14 is the oldest one that the SQL is tested to run on.
const SERVER_VERSION_MIN = 140_000;

/** Is a database there, and new enough? */
export async function checkServer(name: string, opened: Opened): Promise<Check> {
  const advice = "check the URL, the server and the network in between";
  if (opened instanceof Error) return unreadable(name, opened, advice);
  try {
    const found = await opened.query<{ version: string; number: number; database: string }>(
      `select current_setting('server_version') as version,
              current_setting('server_version_num')::int as number,
              current_database() as database`,
    );
    const row = found.rows[0];
    const seen = `PostgreSQL ${row?.version ?? "?"}, database ${row?.database ?? "?"}`;
    if ((row?.number ?? 0) >= SERVER_VERSION_MIN) return fine(name, seen);
    return told(name, "fault", {
      seen,
      meaning: "its SQL lacks what tallyd uses",
      advice: "use PostgreSQL 14 or newer",
    });
  } catch (error) {
    return unreadable(name, error, advice);
  }
}

/** May tallyd's role keep its own schema, and is that schema there? */
export async function checkOwnSchema(pool: Pool): Promise<Check> {
  const name = "own schema";
  const found = await pool.query<{ there: boolean; may_create: boolean; may_use: boolean }>(
    `select n.oid is not null as there,
            has_database_privilege(current_database(), 'create') as may_create,
            coalesce(has_schema_privilege(n.oid, 'usage')
                     and has_schema_privilege(n.oid, 'create'), false) as may_use
       from (select 1) as one
       left join pg_catalog.pg_namespace n on n.nspname = 'tallyd'`,
  );
  const row = found.rows[0];
  if (row?.there === true && row.may_use) return fine(name, "schema tallyd is there and writable");
  if (row?.there === true) {
    return told(name, "fault", {
      seen: "schema tallyd belongs to another role",
      meaning: "nothing can be stored",
      advice: "grant usage and create on schema tallyd to tallyd's role, or give it the schema",
    });
  }
  if (row?.may_create === true) {
    return told(name, "remark", {
      seen: "schema tallyd is not there yet",
      meaning: "it is created at the first start",
      advice: "run `tallyd migrate` to create it now",
    });
  }
  return told(name, "fault", {
    seen: "schema tallyd is not there, and the role may not create it",
    meaning: "nothing can be stored",
    advice: "create schema tallyd authorization <tallyd's role>, as a role that may",
  });
}

/** Does a session keep its server process? Behind a pooler in transaction mode it does not. */
export async function checkSessions(
  pool: Pool,
  sharesSessions: (pool: Pool) => Promise<boolean>,
): Promise<Check> {
  const name = "session locks";
  if (!(await sharesSessions(pool))) return fine(name, "each connection has a server process");
  return told(name, "warning", {
    seen: "two open connections share one server process: a pooler in transaction mode",
    meaning: "session locks and notices do not work there; replicas may do the same work twice",
    advice: "point DATABASE_URL at PostgreSQL itself, or use the pooler's session mode",
  });
}

/** Where the embedded server keeps its data; `null` when a server of the team's own is used. */
export function checkEmbedded(input: {
  readonly databaseUrl: string | null;
  readonly dataDir: string;
}): Check | null {
  if (input.databaseUrl !== null) return null;
  return told("embedded database", "remark", {
    seen: `PostgreSQL under ${input.dataDir}`,
    meaning: "its data lives as long as this folder; a second machine cannot share it",
    advice: "set DATABASE_URL for more than one replica, and back the folder up",
  });
}
