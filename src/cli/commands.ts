import type { Command } from "./command.ts";
import { migrate } from "./commands/migrate.ts";
import { version } from "./commands/version.ts";

/** Every command, in the order of the help. */
export const COMMANDS: readonly Command[] = [migrate, version];
