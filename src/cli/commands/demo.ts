import { inheritedEnvironment } from "../../config/inherited.ts";
import { playDemo } from "../../demo/demo.ts";
import type { Stage } from "../../demo/stage.ts";
import { EXIT } from "../command.ts";
import type { Command, CommandContext } from "../command.ts";

// The demo owns everything it plays with; a setting of the real world must not leak into it.
const DATA_DIR = ".tallyd";

/** `tallyd demo` */
export const demo: Command = {
  name: "demo",
  summary: "watch the daemon catch trouble, without any account",
  usage: ["[--keep]"],
  details: [
    "Starts PostgreSQL, stand-ins for Stripe and Slack and the real daemon on loopback, lets an",
    "agent fleet pay with realistic mistakes, and compares what was injected with what was found.",
    "Exit code 0: nothing missed, nothing invented.",
  ],
  options: {
    keep: { type: "boolean", help: "leave everything running until Ctrl-C" },
  },
  argsMax: 0,
  run: async (context) => {
    const write = (line: string): void => {
      // With --json, stdout belongs to the report alone.
      if (context.json) context.output.stderr(`${line}\n`);
      else context.output.stdout(`${line}\n`);
    };
    const report = await playDemo({
      dataDir: DATA_DIR,
      inherited: inheritedEnvironment(),
      clock: context.clock,
      write,
      signal: context.signal,
      onReport: async (_report, stage) => {
        if (context.flags["keep"] !== true) return;
        for (const line of keepText(stage)) write(line);
        await untilStopped(context);
      },
    });
    const verdict = report.ok
      ? "Nothing missed, nothing invented."
      : "The demo did not end as it should: see above.";
    const further = [
      "Look further while it runs: npm run demo -- --keep",
      "Your own table and Stripe account: README.md, set it up in five minutes",
    ];
    return {
      exitCode: report.ok ? EXIT.ok : EXIT.fault,
      json: report,
      text: ["", verdict, "", ...further].join("\n"),
    };
  },
};

function keepText(stage: Stage): string[] {
  const exports = Object.entries(stage.env).map(([name, value]) => `  export ${name}='${value}'`);
  return [
    "",
    "Everything is left running until Ctrl-C. In another terminal, here:",
    "",
    ...exports,
    "  npm run -s tallyd -- incidents list",
    "  npm run -s tallyd -- explain order-0001",
    `  curl ${stage.adminUrl}/readyz`,
  ];
}

async function untilStopped(context: CommandContext): Promise<void> {
  if (context.signal.aborted) return;
  // A listener does not keep the process alive; the stage's servers do.
  await new Promise<void>((resolve) => {
    context.signal.addEventListener(
      "abort",
      () => {
        resolve();
      },
      { once: true },
    );
  });
}
