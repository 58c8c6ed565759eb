/** The exit code of a command that looked at everything. */
import type { StepFailure } from "../daemon/steps.ts";
import type { Tallyd } from "../daemon/tallyd.ts";
import { countAlarming, isBlindness, openSight } from "../store/incident-list.ts";
import { EXIT } from "./command.ts";
import type { ExitCode } from "./command.ts";

/** What is open and what could not be read. */
export interface Verdict {
  readonly exitCode: ExitCode;
  /** Open and acknowledged incidents of severity warning or critical. */
  readonly open: number;
  readonly lines: readonly string[];
}

/** Unread sources and open gaps win over open incidents (README.md, outside contract). */
export async function verdictOf(
  tallyd: Pick<Tallyd, "pool" | "now">,
  failures: readonly StepFailure[],
): Promise<Verdict> {
  const now = await tallyd.now();
  const open = await countAlarming(tallyd.pool, now);
  // What was read in this pass may leave out what could never be: a hole, a stopped chain.
  const gaps = (await openSight(tallyd.pool, now)).filter(isBlindness);
  const lines = [
    openText(open),
    ...failures.map(({ source, scope, message }) => `NOT READ ${source} of ${scope}: ${message}`),
    ...gaps.map(({ id, summary }) => `NOT SEEN ${summary}: see tallyd incidents show ${id}`),
  ];
  const blind = failures.length > 0 || gaps.length > 0;
  if (blind) return { exitCode: EXIT.unreadable, open, lines };
  return { exitCode: open > 0 ? EXIT.incidents : EXIT.ok, open, lines };
}

function openText(open: number): string {
  if (open === 0) return "nothing is open";
  const what = open === 1 ? "1 incident is open" : `${String(open)} incidents are open`;
  return `${what}: see tallyd incidents list`;
}

/** Counts as one line: `changed 3, faulty 1`; zeros are left out. */
export function countsText(counts: Readonly<Record<string, number>>): string {
  const parts = Object.entries(counts).filter(([, count]) => count !== 0);
  return parts.length === 0
    ? "nothing new"
    : parts.map(([name, count]) => `${name} ${String(count)}`).join(", ");
}
