import { onePass } from "../../daemon/pass.ts";
import type { Command } from "../command.ts";
import { countsText, verdictOf } from "../verdict.ts";
import { withTallyd } from "../with-tallyd.ts";

// Below this a scan is over before anybody has read a line about it.
const LONG_SCAN_BLOCKS = 1_000;

/** `tallyd once` */
export const once: Command = {
  name: "once",
  summary: "make one complete pass over all sources, then stop",
  usage: [],
  details: [
    "Reads the team's table, Stripe's events and lists, matches, judges, looks at every ambiguous",
    "intent whatever its ladder, delivers alerts, and says by its exit code what is open. Safe",
    "beside a running daemon. It never sends the daily digest.",
  ],
  options: {},
  argsMax: 0,
  run: (context) =>
    withTallyd(context, async (tallyd) => {
      const { signal, log, progress } = context;
      const report = await onePass(tallyd, {
        full: true,
        signal,
        onStep: (step) => {
          log.debug(`step ${step}`);
        },
        onScan: (scope, { done, total }) => {
          if (total < LONG_SCAN_BLOCKS) return;
          progress.show({ label: `blocks of ${scope}`, done, total });
        },
      });
      progress.finish();
      const { exitCode, open, lines } = await verdictOf(tallyd, report.failures);
      const steps = Object.entries(report.steps).map(
        ([step, counts]) => `${step.padEnd(8)} ${countsText(counts)}`,
      );
      return {
        exitCode,
        json: { open, failures: report.failures, steps: report.steps },
        text: [...steps, "", ...lines].join("\n"),
      };
    }),
};
