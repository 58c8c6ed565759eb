import type { Pool } from "pg";

import { ConfigError } from "../core/errors.ts";
import type { Settings } from "../core/settings.ts";
import { FIELDS, FIELD_NAMES } from "../sources/local/fields.ts";
import { inspectLocal } from "../sources/local/inspect.ts";
import { remarksFor } from "../sources/local/remarks.ts";
import type { LocalShape } from "../sources/local/shape.ts";
import { listFaults } from "../store/intents.ts";
import type { Check } from "./check.ts";
import { fine, told, unreadable } from "./check.ts";

const NAME = "intents table";

/** The team's table: found, understood, and what is weaker than it could be. Creates nothing. */
export async function checkTable(team: Pool, settings: Settings): Promise<Check[]> {
  const { intents } = settings;
  try {
    if (intents.create && (await isAbsent(team, intents.table))) {
      return [
        told(NAME, "remark", {
          seen: `${intents.table} is not there yet`,
          meaning: "tallyd creates its own table at the first start",
          advice: "name your own table with INTENTS_TABLE if you have one",
        }),
      ];
    }
    const shape = await inspectLocal(team, { ...intents, create: false });
    return [
      fine(NAME, describeShape(shape)),
      zoneCheck(shape, intents.timeZone),
      ...resolveChecks(shape, settings),
      ...remarksFor(shape, settings).map(({ name, status, seen, meaning, advice }) =>
        told(`${NAME}: ${name}`, status, { seen, meaning, advice }),
      ),
    ];
  } catch (error) {
    if (!(error instanceof ConfigError)) {
      return [unreadable(NAME, error, "check INTENTS_DATABASE_URL and the rights of its role")];
    }
    return error.faults.map((fault) =>
      told(NAME, "fault", {
        seen: fault,
        meaning: "the table cannot be read as it is configured",
        advice: "see what is allowed; README, section on mapping a table",
      }),
    );
  }
}

async function isAbsent(team: Pool, table: string): Promise<boolean> {
  const found = await team.query<{ absent: boolean }>("select to_regclass($1) is null as absent", [
    table,
  ]);
  return found.rows[0]?.absent ?? false;
}

function describeShape(shape: LocalShape): string {
  const found = FIELD_NAMES.flatMap((field) => {
    const sql = shape.fields[field];
    if (sql === null) return [];
    const { column } = FIELDS[field];
    return [sql.column === column ? column : `${field} = ${sql.given}`];
  });
  return `${shape.kind} ${shape.relation}: ${found.join(", ")}`;
}

function zoneCheck(shape: LocalShape, timeZone: string | null): Check {
  const zoneless = FIELD_NAMES.filter((field) => shape.fields[field]?.zoneless === true);
  if (zoneless.length === 0) return fine("time zone", "all times carry their zone");
  return told("time zone", "remark", {
    seen: `${zoneless.join(", ")} without a zone, read as ${timeZone ?? "?"}`,
    meaning:
      "in the hour that a clock repeats, ages are taken as the lower of two, so alarms may be late",
    advice: "alter the columns to timestamptz when you can",
  });
}

/** RESOLVE=write promises writes; a table that takes none breaks the promise. */
function resolveChecks(shape: LocalShape, settings: Settings): Check[] {
  if (settings.resolve !== "write") {
    const written = settings.resolve === "off" ? "nothing is decided" : "decisions are only told";
    return [fine("resolver", `RESOLVE=${settings.resolve}: ${written}`)];
  }
  if (shape.writes !== null) {
    const columns = Object.values(shape.writes).filter((column) => column !== null);
    return [fine("resolver", `RESOLVE=write: may write ${columns.join(", ")}`)];
  }
  return [
    told("resolver", "warning", {
      seen: `RESOLVE=write, but ${shape.writeRefusal ?? "nothing may be written"}`,
      meaning: "every decision is told and none is written",
      advice:
        shape.lackingRights === null
          ? "give intents.write, or set RESOLVE=suggest"
          : `${shape.lackingRights.grant} (deploy/grants.sql), or set RESOLVE=suggest`,
    }),
  ];
}

// Enough rows to see the pattern.
const FAULTS_SHOWN_MAX = 5;

/** Rows that were set aside at the last reads; `null` before tallyd's schema is there. */
export async function checkRows(own: Pool): Promise<Check | null> {
  const there = await own.query<{ there: boolean }>(
    "select to_regclass('tallyd.intent_fault') is not null as there",
  );
  if (there.rows[0]?.there !== true) return null;
  const faults = await listFaults(own, { limit: FAULTS_SHOWN_MAX });
  if (faults.length === 0) return fine("rows", "no row had to be set aside");
  const shown = faults.map(({ intentId, faults: [first] }) => {
    return `${intentId}: ${first?.field ?? "row"} is ${first?.seen ?? "?"}`;
  });
  return told("rows", "warning", {
    seen: shown.join("; "),
    meaning: "these rows are not judged, or only with their doubtful times",
    advice: `${faults[0]?.faults[0]?.field ?? "the field"} may be: ${
      faults[0]?.faults[0]?.allowed ?? "see the table"
    }`,
  });
}
