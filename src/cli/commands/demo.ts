import { dataDirSetting, inheritedEnvironment } from "../../config/inherited.ts";
import { playDemo } from "../../demo/demo.ts";
import { EXIT } from "../command.ts";
import type { Command } from "../command.ts";

/** `tallyd demo` */
export const demo: Command = {
  name: "demo",
  summary: "watch the real daemon catch real trouble; needs no account and no database",
  usage: ["[--keep]"],
  details: [
    "Starts an embedded PostgreSQL, stand-ins for Stripe and Slack, a fleet of agents that make",
    "mistakes, and the daemon. Ends with a table of what was injected and what was found.",
    "Everything is kept under TALLYD_DATA_DIR (./.tallyd) and starts afresh each time.",
  ],
  options: { keep: { type: "boolean", help: "leave it running until Ctrl-C" } },
  argsMax: 0,
  run: async (context) => {
    const { signal, output, json, flags } = context;
    // The story is what this command prints; with --json stdout belongs to the report alone.
    const write = json ? output.stderr : output.stdout;
    const report = await playDemo({
      dataDir: dataDirSetting(),
      inherited: inheritedEnvironment(),
      clock: context.clock,
      write: (line) => {
        write(`${line}\n`);
      },
      signal,
      onReport: async () => {
        if (flags["keep"] === true) await untilAborted(signal);
      },
    });
    return { exitCode: report.ok ? EXIT.ok : EXIT.fault, json: report, text: "" };
  },
};

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => {
      resolve();
    });
  });
}
