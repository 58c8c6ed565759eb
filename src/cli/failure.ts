/** Turns an error into an exit code and words. */
import { ConfigError, RequestError, UnreadableError } from "../core/errors.ts";
import { messageOf } from "../core/message.ts";
import { EmbeddedError, PostgresTooOldError, SchemaNewerError } from "../store/errors.ts";
import { isOutOfReach } from "../store/out-of-reach.ts";
import { EXIT } from "./command.ts";
import type { ExitCode } from "./command.ts";

/** What is told of an error. */
export interface Failure {
  readonly exitCode: ExitCode;
  /** Stable word for programs. */
  readonly code: string;
  readonly message: string;
  /** One sentence per fault of a configuration or command line, or what can be done; else empty. */
  readonly faults: readonly string[];
}

/** A command line that cannot be understood: exit code 2, like a bad configuration. */
export class UsageError extends ConfigError {
  constructor(faults: readonly string[], options?: ErrorOptions) {
    super(faults, options);
    this.name = "UsageError";
  }
}

/** What the exit code and the words of `error` are (README.md, outside contract). */
export function failureOf(error: unknown): Failure {
  if (error instanceof ConfigError) {
    const usage = error instanceof UsageError;
    const message = usage ? "the command line is not understood" : "the settings are not usable";
    const code = usage ? "usage" : "config";
    return { exitCode: EXIT.usage, code, message, faults: error.faults };
  }
  if (error instanceof RequestError) {
    const { code, message, hints } = error;
    return { exitCode: EXIT.usage, code, message, faults: hints };
  }
  if (error instanceof UnreadableError) {
    return { exitCode: EXIT.unreadable, code: error.code, message: error.message, faults: [] };
  }
  if (error instanceof SchemaNewerError || error instanceof PostgresTooOldError) {
    return { exitCode: EXIT.usage, code: error.code, message: error.message, faults: [] };
  }
  if (error instanceof EmbeddedError || isOutOfReach(error)) {
    const message = `tallyd's own database is out of reach: ${messageOf(error)}`;
    return { exitCode: EXIT.unreadable, code: "database", message, faults: [] };
  }
  return { exitCode: EXIT.fault, code: "fault", message: messageOf(error), faults: [] };
}

/** The JSON of a failure. */
export function failureJson(failure: Failure): unknown {
  const { code, message, faults } = failure;
  return { error: { code, message, faults } };
}

/** The readable lines of a failure. */
export function failureText(failure: Failure): string {
  const lines = failure.faults.map((fault) => `  - ${fault}`);
  return [`tallyd: ${failure.message}`, ...lines].join("\n");
}
