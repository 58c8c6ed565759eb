/** The command line: finds the command, runs it, prints its result or its failure. */
import { loadOwnSettings } from "../config/load-settings.ts";
import type { Clock } from "../core/clock.ts";
import type { Settings } from "../core/settings.ts";
import { visibleText } from "../core/visible.ts";
import { parseCommandLine, wantsJson } from "./arguments.ts";
import { EXIT } from "./command.ts";
import type { Command, CommandContext, CommandResult, ExitCode, Output } from "./command.ts";
import { didYouMean } from "./did-you-mean.ts";
import { UsageError, failureJson, failureOf, failureText } from "./failure.ts";
import type { Failure } from "./failure.ts";
import { commandHelp, overview } from "./help.ts";
import { jsonText } from "./json.ts";
import { createLog, redact } from "./log.ts";
import type { CommandLog } from "./log.ts";
import { createProgress } from "./progress.ts";
import { secretsOf } from "./secrets.ts";

/** The process around a command line. */
export interface MainDeps {
  readonly commands: readonly Command[];
  readonly output: Output;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const JSON_INDENT = 2;

/**
 * Runs one command line (without `node` and the script) and returns the exit code. Prints exactly
 * one thing: the result, or the failure; with `--json` it is JSON on stdout. Never throws.
 */
export async function main(argv: readonly string[], deps: MainDeps): Promise<ExitCode> {
  const json = wantsJson(argv);
  const secrets: string[] = [];
  const log = createLog({
    write: deps.output.stderr,
    terminal: deps.output.terminal,
    clock: deps.clock,
  });
  const shown = { stacks: false };
  const settings = (): Promise<Settings> => {
    const loaded = loadOwnSettings();
    secrets.push(...secretsOf(loaded));
    log.configure({ level: loaded.logLevel, secrets });
    shown.stacks = loaded.logLevel === "debug";
    for (const warning of loaded.warnings) log.warn(warning);
    return Promise.resolve(loaded);
  };
  try {
    const result = await dispatch(argv, { ...deps, json, log, settings });
    print(deps.output, json, result);
    return result.exitCode;
  } catch (error) {
    const failure = deps.signal.aborted ? interrupted(deps.signal) : failureOf(error);
    const text = json
      ? jsonText(failureJson(failure), JSON_INDENT)
      : visibleText(failureText(failure));
    const write = json ? deps.output.stdout : deps.output.stderr;
    write(`${redact(text, secrets)}\n`);
    if (shown.stacks && error instanceof Error && error.stack !== undefined) {
      deps.output.stderr(`${redact(error.stack, secrets)}\n`);
    }
    return failure.exitCode;
  }
}

/** Whatever a stop signal broke off: what was done is kept, the rest was not looked at. */
function interrupted(signal: AbortSignal): Failure {
  const why = signal.reason instanceof Error ? signal.reason.message : "stopped";
  const message = `${why} before the command was done; what was done is kept`;
  return { exitCode: EXIT.unreadable, code: "interrupted", message, faults: [] };
}

interface Dispatch extends MainDeps {
  readonly json: boolean;
  readonly log: CommandLog;
  readonly settings: () => Promise<Settings>;
}

async function dispatch(argv: readonly string[], deps: Dispatch): Promise<CommandResult> {
  const [first, ...rest] = argv.filter((arg, index) => index > 0 || arg !== "--json");
  if (first === undefined) {
    const known = namesOf(deps.commands).join(", ");
    throw new UsageError([`a command is missing. Known: ${known}.`, "See: tallyd help"]);
  }
  if (["help", "--help", "-h"].includes(first)) return help(rest, deps.commands);
  const name = ["--version", "-v"].includes(first) ? "version" : first;
  const command = find(name, deps.commands);
  const parsed = parseCommandLine(command, rest);
  if (parsed.flags["help"] === true) return textResult(commandHelp(command));
  if (parsed.faults.length > 0) {
    throw new UsageError([...parsed.faults, `See: tallyd help ${command.name}`]);
  }
  const context: CommandContext = {
    args: parsed.args,
    flags: parsed.flags,
    json: deps.json,
    output: deps.output,
    log: deps.log,
    clock: deps.clock,
    signal: deps.signal,
    progress: createProgress({
      write: deps.output.stderr,
      terminal: deps.output.terminal,
      ...(deps.output.columns === undefined ? {} : { columns: deps.output.columns }),
      clock: deps.clock,
    }),
    settings: deps.settings,
  };
  return command.run(context);
}

function help(rest: readonly string[], commands: readonly Command[]): CommandResult {
  const name = rest.find((arg) => !arg.startsWith("-"));
  if (name === undefined || name === "help") return textResult(overview(commands));
  return textResult(commandHelp(find(name, commands)));
}

function textResult(text: string): CommandResult {
  return { exitCode: EXIT.ok, json: { help: text.split("\n") }, text };
}

function find(name: string, commands: readonly Command[]): Command {
  const command = commands.find((candidate) => candidate.name === name);
  if (command !== undefined) return command;
  const names = namesOf(commands);
  const kind = name.startsWith("-") ? "option" : "command";
  throw new UsageError([
    `${kind} "${name}" is unknown.${didYouMean(name, names)} Known commands: ${names.join(", ")}.`,
  ]);
}

function namesOf(commands: readonly Command[]): string[] {
  return [...commands.map(({ name }) => name), "help"];
}

function print(output: Output, json: boolean, result: CommandResult): void {
  if (json) output.stdout(`${jsonText(result.json, JSON_INDENT)}\n`);
  else if (result.text !== "") output.stdout(`${visibleText(result.text)}\n`);
}
