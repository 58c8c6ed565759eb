/** What a command has of its process: streams that are flushed, and signals. */
import { EXIT } from "./command.ts";
import type { ExitCode, Output } from "./command.ts";

/** The streams of this process. */
export interface ProcessOutput extends Output {
  /** Settles when everything written has left the process. */
  readonly flush: () => Promise<void>;
}

// An orchestrator sends the first, a person the second; the third comes with a closed terminal.
const STOP_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/** Opens stdout and stderr; a reader that went away (`| head`) is no error. */
export function openOutput(): ProcessOutput {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
    });
  }
  return {
    stdout: (text) => {
      process.stdout.write(text);
    },
    stderr: (text) => {
      process.stderr.write(text);
    },
    terminal: process.stderr.isTTY,
    ...(process.stderr.isTTY ? { columns: process.stderr.columns } : {}),
    flush: async () => {
      await Promise.all([drained(process.stdout), drained(process.stderr)]);
    },
  };
}

/** Aborted by the first stop signal; the second ends the process at once with exit code 1. */
export function stopSignal(output: Output): AbortSignal {
  const controller = new AbortController();
  for (const name of STOP_SIGNALS) {
    process.on(name, () => {
      if (controller.signal.aborted) {
        output.stderr(`tallyd: ${name} again: ending at once\n`);
        process.exit(EXIT.fault);
      }
      controller.abort(new Error(`stopped by ${name}`));
    });
  }
  return controller.signal;
}

/** Ends the process once its output has left it. */
export async function leave(output: ProcessOutput, exitCode: ExitCode): Promise<never> {
  await output.flush();
  process.exit(exitCode);
}

async function drained(stream: NodeJS.WriteStream): Promise<void> {
  if (stream.destroyed || stream.writableLength === 0) return;
  await new Promise<void>((resolve) => {
    stream.once("close", resolve);
    stream.write("", () => {
      resolve();
    });
  });
}
