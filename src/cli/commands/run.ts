import { startDaemon } from "../../daemon/run.ts";
import { EXIT } from "../command.ts";
import type { Command } from "../command.ts";
import { packageVersion } from "../version.ts";
import { withTallyd } from "../with-tallyd.ts";

/** `tallyd run` */
export const run: Command = {
  name: "run",
  summary: "run the daemon: webhooks, jobs, health and metrics",
  usage: [],
  details: [
    "Stops on SIGTERM or Ctrl-C: requests in flight are answered and jobs end or give back their",
    "work within ten seconds. A second signal ends the process at once.",
  ],
  options: {},
  argsMax: 0,
  run: (context) =>
    withTallyd(context, async (tallyd) => {
      const { signal, log, output } = context;
      const daemon = await startDaemon(tallyd, {
        version: packageVersion(),
        routers: [],
        say: (text) => {
          output.stderr(`${text}\n`);
        },
      });
      await untilAborted(signal);
      log.info("stopping: finishing or giving back what is under way");
      const forced = forceAfter(() => {
        output.stderr("tallyd: did not stop in time; what is left is free now\n");
        process.exit(EXIT.fault);
      });
      await daemon.stop();
      clearTimeout(forced);
      log.info("stopped");
      return { exitCode: EXIT.ok, json: { stopped: true }, text: "" };
    }),
};

// Just below the ten seconds that are promised: an orchestrator kills not much later.
const STOP_MAX_MS = 9_800;

function forceAfter(end: () => void): NodeJS.Timeout {
  return setTimeout(end, STOP_MAX_MS);
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      resolve();
    };
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
}
