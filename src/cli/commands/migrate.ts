import { openDatabase } from "../../daemon/open-database.ts";
import { migrate as migrateSchema } from "../../store/migrate.ts";
import { EXIT } from "../command.ts";
import type { Command } from "../command.ts";

/** `tallyd migrate` */
export const migrate: Command = {
  name: "migrate",
  summary: "bring tallyd's own schema to this version",
  usage: [],
  details: [
    "Safe at any time and from any number of machines at once: each migration lands once.",
    "The commands that need the schema do it by themselves; this one is for deployments that",
    "migrate with another role than the one that runs the daemon.",
  ],
  options: {},
  argsMax: 0,
  run: async (context) => {
    const settings = await context.settings();
    const database = await openDatabase(settings, context.log);
    try {
      const { applied, current } = await migrateSchema(database.pool);
      const done =
        applied.length === 0
          ? "nothing to do"
          : applied.map((name) => `applied ${name}`).join("\n");
      const text = `${done}\nschema tallyd is at version ${String(current)}`;
      return { exitCode: EXIT.ok, json: { applied, current }, text };
    } finally {
      await database.close();
    }
  },
};
