import type { Reporter, SerializedError, TestModule } from "vitest/node";

/** Numbers of one run. */
export interface RunCount {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** The run's last line in plain words. */
export function closingLine(count: RunCount): string {
  const skipped = count.skipped > 0 ? `, ${String(count.skipped)} skipped` : "";
  return `${String(count.passed)} passed, ${String(count.failed)} failed${skipped}`;
}

/**
 * Counts the tests of all modules. A file that cannot be imported, a failed hook and an error
 * outside of any test each count as one failure: none of them shows up among the tests.
 */
export function countRun(
  modules: readonly TestModule[],
  unhandled: readonly SerializedError[],
): RunCount {
  const count = { passed: 0, failed: unhandled.length, skipped: 0 };
  for (const module of modules) {
    count.failed += module.errors().length;
    for (const suite of module.children.allSuites()) count.failed += suite.errors().length;
    for (const test of module.children.allTests()) {
      const state = test.result().state;
      // A test that never ended (a killed worker) is no pass.
      if (state === "pending") count.failed += 1;
      else count[state] += 1;
    }
  }
  return count;
}

/** vitest reporter that prints {@link closingLine} after everything else. */
export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    const count = countRun(modules, unhandled);
    // At exit, because vitest prints its own summary after the reporters have ended.
    process.once("exit", () => {
      process.stdout.write(`${closingLine(count)}\n`);
    });
  }
}
