import { readFile } from "node:fs/promises";
import path from "node:path";

import { dataDirSetting, inheritedEnvironment } from "../../config/inherited.ts";
import { messageOf } from "../../core/message.ts";
import { endPool } from "../../daemon/open-database.ts";
import { runLab } from "../../lab/lab.ts";
import type { LabReport } from "../../lab/lab.ts";
import { parseSchedules } from "../../lab/schedule.ts";
import type { Schedule } from "../../lab/schedule.ts";
import { labNotes, labTable } from "../../lab/text.ts";
import { startEmbedded } from "../../store/embedded.ts";
import { openPool } from "../../store/pool.ts";
import { EXIT } from "../command.ts";
import type { Command, CommandContext } from "../command.ts";
import { UsageError } from "../failure.ts";
import { tableText } from "../table.ts";
import { packageVersion } from "../version.ts";

// The laboratory itself asks one thing at a time; its workers bring connections of their own.
const CONNECTIONS_MAX = 2;

/** `tallyd lab` */
export const lab: Command = {
  name: "lab",
  summary: "which retry designs pay twice: event schedules against two models and the real ledger",
  usage: ["[--schedules FILE] [--models]"],
  details: [
    "Runs eight schedules (and those of the file) against a cache of completed answers, a retained",
    "operation ledger, and tallyd/ledger on an embedded PostgreSQL below TALLYD_DATA_DIR/lab with",
    "killed and concurrent worker processes. No setting is read, nothing outside is asked.",
    "Exit code 3 when a ledger paid twice or lost an operation, or a schedule's `expect` failed.",
  ],
  options: {
    schedules: { type: "string", value: "FILE", help: "JSON file with schedules of your own" },
    models: { type: "boolean", help: "the two models alone: no database, no processes" },
  },
  argsMax: 0,
  run: async (context) => {
    const file = context.flags["schedules"];
    const more = typeof file === "string" ? parseSchedules(await readText(file), file) : [];
    const models = context.flags["models"] === true;
    const report = models ? await modelsOnly(more) : await withLedger(context, more);
    const { head, rows } = labTable(report);
    return {
      exitCode: report.counterexamples.length === 0 ? EXIT.ok : EXIT.incidents,
      json: report,
      text: `${tableText(head, rows)}\n\n${labNotes(report)}`,
    };
  },
};

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new UsageError([`--schedules ${file} cannot be read (${messageOf(error)})`], {
      cause: error,
    });
  }
}

function modelsOnly(more: readonly Schedule[]): Promise<LabReport> {
  return runLab({ version: packageVersion(), more, real: null, onProgress: () => undefined });
}

async function withLedger(context: CommandContext, more: readonly Schedule[]): Promise<LabReport> {
  const { log, clock } = context;
  const server = await startEmbedded({
    dataDir: path.join(dataDirSetting(), "lab"),
    log: (line) => {
      log.info(line);
    },
  });
  const pool = openPool({ url: server.url, applicationName: "tallyd-lab", max: CONNECTIONS_MAX });
  try {
    return await runLab({
      ...{ version: packageVersion(), more },
      real: { pool, databaseUrl: server.url, clock, env: inheritedEnvironment() },
      onProgress: (line) => {
        log.info(line);
      },
    });
  } finally {
    await endPool(pool);
    await server.stop();
  }
}
