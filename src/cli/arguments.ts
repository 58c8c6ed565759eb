/** Reads the command line. Pure: the faults are collected, nothing is printed. */
import { parseArgs } from "node:util";

import type { Command, CommandOption } from "./command.ts";
import { didYouMean } from "./did-you-mean.ts";

/** What the command line of one command says. */
export interface Parsed {
  readonly args: readonly string[];
  readonly flags: Readonly<Record<string, string | boolean | undefined>>;
  /** One sentence each; empty when all is well. */
  readonly faults: readonly string[];
}

/** Options that every command has. */
export const GLOBAL_OPTIONS: Readonly<Record<string, CommandOption>> = {
  json: { type: "boolean", help: "print JSON to stdout; logs and progress go to stderr" },
  help: { type: "boolean", help: "show this help" },
};

/** Does `argv` ask for JSON? Known before anything else, so that every error can be JSON too. */
export function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf("--");
  return (end === -1 ? argv : argv.slice(0, end)).includes("--json");
}

/** Parses what follows the command's name against its options; collects every fault. */
export function parseCommandLine(command: Command, argv: readonly string[]): Parsed {
  const options = { ...command.options, ...GLOBAL_OPTIONS };
  const types = Object.entries(options).map(([name, { type }]) => [name, { type }] as const);
  const { tokens, positionals } = parseArgs({
    args: [...argv],
    options: { ...Object.fromEntries(types), help: { type: "boolean", short: "h" } },
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  const flags: Record<string, string | boolean> = {};
  const faults: string[] = [];
  for (const token of tokens) {
    if (token.kind !== "option") continue;
    const option = options[token.name];
    const fault = optionFault(token, option, Object.keys(options));
    if (fault !== null) faults.push(fault);
    else flags[token.name] = token.value ?? true;
  }
  if (positionals.length > command.argsMax) {
    const extra = positionals.slice(command.argsMax).join(" ");
    const allowed = command.argsMax === 0 ? "no" : `at most ${String(command.argsMax)}`;
    faults.push(`"${extra}" is too much: tallyd ${command.name} takes ${allowed} arguments.`);
  }
  return { args: positionals, flags, faults };
}

function optionFault(
  token: {
    readonly rawName: string;
    readonly value?: string | undefined;
    readonly inlineValue?: boolean | undefined;
  },
  option: CommandOption | undefined,
  known: readonly string[],
): string | null {
  if (option === undefined) {
    const names = known.map((name) => `--${name}`);
    return `option ${token.rawName} is unknown.${didYouMean(token.rawName, names)}`;
  }
  if (option.type === "boolean") {
    return token.value === undefined ? null : `option ${token.rawName} takes no value.`;
  }
  // `--note --json`: the next option was taken for the value. `--note=--json` says that it is one.
  const swallowed = token.inlineValue !== true && token.value?.startsWith("--") === true;
  if (token.value === undefined || token.value === "" || swallowed) {
    return `option ${token.rawName} needs a value: ${token.rawName} ${option.value ?? "VALUE"}.`;
  }
  return null;
}
