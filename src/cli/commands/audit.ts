import { fastUntilQuiet } from "../../daemon/fast-path.ts";
import { auditOperations, deliverAlerts } from "../../daemon/steps.ts";
import type { Command } from "../command.ts";
import { countsText, verdictOf } from "../verdict.ts";
import { withTallyd } from "../with-tallyd.ts";

// What one audit may tell at once; the daemon's beat or the next command tells the rest.
const DELIVER_MAX = 1_000;

/** `tallyd audit` */
export const audit: Command = {
  name: "audit",
  summary: "judge every known operation anew, without reading the sources",
  usage: [],
  details: ["Runs the same detectors as the daemon over all operations, in bounded chunks."],
  options: {},
  argsMax: 0,
  run: (context) =>
    withTallyd(context, async (tallyd) => {
      const { signal, progress } = context;
      await fastUntilQuiet(tallyd, signal);
      const { counts, failures } = await auditOperations(tallyd, {
        signal,
        onProgress: ({ done, total }) => {
          progress.show({ label: "operations", done, total });
        },
      });
      progress.finish();
      const delivered = await deliverAlerts(tallyd, {
        early: true,
        afterStart: true,
        limit: DELIVER_MAX,
        signal,
      });
      const verdict = await verdictOf(tallyd, [...failures, ...delivered.failures]);
      return {
        exitCode: verdict.exitCode,
        json: { open: verdict.open, failures, ...counts },
        text: [countsText(counts), ...verdict.lines].join("\n"),
      };
    }),
};
