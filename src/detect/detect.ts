import type { Pool } from "pg";

import type { Code, Finding } from "../core/finding.ts";
import { planByKeys, runNamed } from "../store/named-sql.ts";
import { withTx } from "../store/tx.ts";
import type { Detector } from "./load.ts";
import { readFinding } from "./row.ts";

/** What one run over a set of operations found, and which codes were judged to their end. */
export interface Detection {
  readonly findings: readonly Finding[];
  readonly codes: ReadonlySet<Code>;
}

// A detector over one batch of operations takes milliseconds; half a minute is a plan gone wrong,
// and stopping it is better than holding a snapshot for hours.
const STATEMENT_TIMEOUT_MS = 30_000;

/**
 * Runs the detectors in one read-only snapshot, so that all of them see the same instant. Throws
 * what the server says when one of them fails: a run that is not whole closes nothing.
 */
export async function detect(
  pool: Pool,
  detectors: readonly Detector[],
  parameters: Readonly<Record<string, unknown>>,
): Promise<Detection> {
  const findings = await withTx(
    pool,
    async (tx) => {
      await planByKeys(tx);
      const found: Finding[] = [];
      for (const detector of detectors) {
        const rows = await runNamed(tx, detector.sql, parameters);
        found.push(...rows.map((row) => readFinding(detector, row)));
      }
      return found;
    },
    { readOnly: true, isolation: "repeatable read", statementTimeoutMs: STATEMENT_TIMEOUT_MS },
  );
  return { findings, codes: new Set(detectors.map((detector) => detector.code)) };
}
