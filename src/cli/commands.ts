import type { Command } from "./command.ts";
import { audit } from "./commands/audit.ts";
import { backfill } from "./commands/backfill.ts";
import { demo } from "./commands/demo.ts";
import { doctor } from "./commands/doctor.ts";
import { explain } from "./commands/explain.ts";
import { incidents } from "./commands/incidents.ts";
import { lab } from "./commands/lab.ts";
import { migrate } from "./commands/migrate.ts";
import { once } from "./commands/once.ts";
import { report } from "./commands/report.ts";
import { run } from "./commands/run.ts";
import { version } from "./commands/version.ts";

/** Every command, in the order of the help. */
export const COMMANDS: readonly Command[] = [
  run,
  once,
  demo,
  migrate,
  doctor,
  backfill,
  audit,
  incidents,
  explain,
  report,
  lab,
  version,
];
