/** How a check ended. A fault keeps tallyd from its work; a warning makes a proof weaker. */
export type CheckStatus = "ok" | "remark" | "warning" | "fault";

/** One thing that was looked at. */
export interface Check {
  readonly name: string;
  readonly status: CheckStatus;
  /** What was found; without secrets. */
  readonly seen: string;
  /** What that means for the team; empty where it goes without saying. */
  readonly meaning: string;
  /** What to do; empty where nothing is to be done. */
  readonly advice: string;
  /** Something could not be read, so its health is unknown (exit code 4 instead of 2). */
  readonly unreadable: boolean;
}

/** A check that found everything in order. */
export function fine(name: string, seen: string, meaning = ""): Check {
  return { name, status: "ok", seen, meaning, advice: "", unreadable: false };
}

/** A check with something to say. */
export function told(
  name: string,
  status: Exclude<CheckStatus, "ok">,
  words: { readonly seen: string; readonly meaning: string; readonly advice: string },
): Check {
  return { name, status, ...words, unreadable: false };
}

/** A check whose object could not be read. */
export function unreadable(name: string, error: unknown, advice: string): Check {
  const seen = error instanceof Error ? error.message : String(error);
  const meaning = "its health is unknown";
  return { name, status: "fault", seen, meaning, advice, unreadable: true };
}

/**
 * Exit code of `doctor` (README.md, outside contract): 4 when something could not be read, 2 for
 * another
 * fault, 0 when remarks and warnings are all there is.
 */
export function doctorExitCode(checks: readonly Check[]): 0 | 2 | 4 {
  const faults = checks.filter((check) => check.status === "fault");
  if (faults.some((check) => check.unreadable)) return 4;
  return faults.length > 0 ? 2 : 0;
}
