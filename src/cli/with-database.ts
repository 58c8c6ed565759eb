import type { Settings } from "../core/settings.ts";
import { openDatabase } from "../daemon/open-database.ts";
import type { Database } from "../daemon/open-database.ts";
import { migrate } from "../store/migrate.ts";
import type { CommandContext } from "./command.ts";

/** Reads the settings, opens tallyd's own database, migrates it, and closes it after `work`. */
export async function withDatabase<T>(
  context: CommandContext,
  work: (database: Database, settings: Settings) => Promise<T>,
): Promise<T> {
  const settings = await context.settings();
  const database = await openDatabase(settings, context.log);
  try {
    await migrate(database.pool);
    return await work(database, settings);
  } finally {
    await database.close();
  }
}
