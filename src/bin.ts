#!/usr/bin/env node
import { COMMANDS } from "./cli/commands.ts";
import { main } from "./cli/main.ts";
import { leave, openOutput, stopSignal } from "./cli/process.ts";
import { systemClock } from "./core/clock.ts";

const output = openOutput();
const exitCode = await main(process.argv.slice(2), {
  commands: COMMANDS,
  output,
  clock: systemClock,
  signal: stopSignal(output),
});
await leave(output, exitCode);
