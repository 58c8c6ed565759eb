import { expectedSources } from "../../daemon/expected-sources.ts";
import { gatherReport } from "../../report/gather.ts";
import { reportRange } from "../../report/range.ts";
import type { Bound } from "../../report/range.ts";
import type { Report } from "../../report/report.ts";
import { reportText } from "../../report/text.ts";
import { databaseNow } from "../../store/database-now.ts";
import { EXIT } from "../command.ts";
import type { Command, CommandContext, ExitCode } from "../command.ts";
import { UsageError } from "../failure.ts";
import { parseTime } from "../when.ts";
import { withDatabase } from "../with-database.ts";

/** `tallyd report` */
export const report: Command = {
  name: "report",
  summary: "what happened in a range: money, rows, decisions, incidents, coverage, reads",
  usage: ["[--from DAY|TIME] [--to DAY|TIME]"],
  details: [
    "Without a range: the last whole day in TIME_ZONE. A day means its beginning there; the end",
    "is not included. Only what is stored is shown; no source is asked. Exit code 4 when a source",
    "is not proven to be read over the range.",
  ],
  options: {
    from: { type: "string", value: "DAY|TIME", help: "where to begin; default: a day before --to" },
    to: { type: "string", value: "DAY|TIME", help: "where to end; default: now, with --from" },
  },
  argsMax: 0,
  run: (context) => {
    const bounds = { from: boundOf(context, "from"), to: boundOf(context, "to") };
    return withDatabase(context, async ({ pool }, settings) => {
      const now = await databaseNow(pool);
      const range = await reportRange(pool, { ...bounds, timeZone: settings.timeZone, now });
      if (range.from >= range.to) {
        const [from, to] = [range.from.toISOString(), range.to.toISOString()];
        throw new UsageError([`--from ${from} is not before the end (${to})`]);
      }
      const expected = expectedSources(settings);
      const gathered = await gatherReport(pool, { range, now, settings, expected });
      return { exitCode: exitCodeOf(gathered), json: gathered, text: reportText(gathered) };
    });
  },
};

const DAY = /^\d{4}-\d{2}-\d{2}$/;

function boundOf({ flags }: CommandContext, name: "from" | "to"): Bound {
  const text = flags[name];
  if (typeof text !== "string") return null;
  const at = parseTime(text, `--${name}`);
  return DAY.test(text) ? { day: text } : { at };
}

/** What was not read wins over what is open (README.md, outside contract). */
function exitCodeOf({ complete, open }: Report): ExitCode {
  if (!complete) return EXIT.unreadable;
  return open > 0 ? EXIT.incidents : EXIT.ok;
}
