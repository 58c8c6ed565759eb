/** What a command is and what it is given. */
import type { Clock } from "../core/clock.ts";
import type { Settings } from "../core/settings.ts";
import type { CommandLog } from "./log.ts";
import type { Progress } from "./progress.ts";

/** Exit codes of every command (README.md, outside contract). */
export const EXIT = {
  /** Nothing is open. */
  ok: 0,
  /** A fault of tallyd. */
  fault: 1,
  /** Bad configuration or usage. */
  usage: 2,
  /** Open or acknowledged incidents of severity warning or critical. */
  incidents: 3,
  /** Something could not be read, so health is unknown; wins over `incidents`. */
  unreadable: 4,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** An option of a command, beside `--json` and `--help`, which all have. */
export interface CommandOption {
  readonly type: "boolean" | "string";
  /** What the value stands for in the help, e.g. `TEXT`; boolean options have none. */
  readonly value?: string;
  readonly help: string;
}

/** Where a command's output goes. */
export interface Output {
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  /** Is stderr a terminal? */
  readonly terminal: boolean;
  readonly columns?: number;
}

/** What a command is given. */
export interface CommandContext {
  /** Arguments that are no options, in their order. */
  readonly args: readonly string[];
  readonly flags: Readonly<Record<string, string | boolean | undefined>>;
  readonly json: boolean;
  readonly output: Output;
  readonly log: CommandLog;
  readonly clock: Clock;
  /** Aborted at SIGINT, SIGTERM and SIGHUP: end soon and clean up. */
  readonly signal: AbortSignal;
  readonly progress: Progress;
  /** Reads and checks the settings; throws ConfigError with every fault. */
  readonly settings: () => Promise<Settings>;
}

/** What a command has to say at its end: `json` with `--json`, `text` without. */
export interface CommandResult {
  readonly exitCode: ExitCode;
  readonly json: unknown;
  /** Without the last line end; empty: nothing is printed. */
  readonly text: string;
}

export interface Command {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** What follows the name, e.g. `ack ID [--note TEXT]`; one line per form. */
  readonly usage: readonly string[];
  /** More to know, one paragraph a line; may be empty. */
  readonly details: readonly string[];
  readonly options: Readonly<Record<string, CommandOption>>;
  /** How many arguments may follow. */
  readonly argsMax: number;
  readonly run: (context: CommandContext) => Promise<CommandResult>;
}
