/** The texts of `tallyd help`. */
import { GLOBAL_OPTIONS } from "./arguments.ts";
import type { Command, CommandOption } from "./command.ts";

const EXIT_CODES = [
  "Exit codes:",
  "  0  nothing is open",
  "  1  a fault of tallyd",
  "  2  bad configuration or usage",
  "  3  incidents of severity warning or critical are open",
  "  4  something could not be read, so health is unknown (wins over 3)",
];

/** The list of commands. */
export function overview(commands: readonly Command[]): string {
  const rows = commands.map(({ name, summary }) => [name, summary] as const);
  return [
    "tallyd compares your payment_intents table with what really happened at Stripe.",
    "",
    "Usage: tallyd COMMAND [OPTIONS]",
    "",
    "Commands:",
    ...columns(rows),
    "",
    "Every command takes --json (JSON to stdout, logs to stderr) and --help.",
    "Settings come from the environment and the file that TALLYD_CONFIG names.",
    "",
    ...EXIT_CODES,
  ].join("\n");
}

/** The help of one command. */
export function commandHelp(command: Command): string {
  const forms = command.usage.length === 0 ? [""] : command.usage;
  const options = { ...command.options, ...GLOBAL_OPTIONS };
  const rows = Object.entries(options).map(([name, option]) => [
    optionForm(name, option),
    option.help,
  ]);
  const usage = forms.map((form, index) => {
    const head = index === 0 ? "Usage: " : "       ";
    return `${head}tallyd ${command.name} ${form}`.trimEnd();
  });
  return [
    command.summary,
    "",
    ...usage,
    ...(command.details.length === 0 ? [] : ["", ...command.details]),
    "",
    "Options:",
    ...columns(rows),
    "",
    ...EXIT_CODES,
  ].join("\n");
}

function optionForm(name: string, option: CommandOption): string {
  return option.type === "boolean" ? `--${name}` : `--${name} ${option.value ?? "VALUE"}`;
}

function columns(rows: readonly (readonly string[])[]): string[] {
  const width = Math.max(...rows.map(([left = ""]) => left.length));
  return rows.map(([left = "", right = ""]) => `  ${left.padEnd(width)}  ${right}`);
}
