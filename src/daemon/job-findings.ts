import type { Finding } from "../core/finding.ts";
import type { UnhealthyJob } from "../scheduler/health.ts";

/** Jobs that no replica finished for three periods: tallyd is blind in part, and says so. */
export function jobFindings(jobs: readonly UnhealthyJob[]): Finding[] {
  return jobs.map(({ job, lastOkAt, periodsMissed, lastError }) => {
    const since = lastOkAt === null ? "since the start" : `since ${lastOkAt.toISOString()}`;
    return {
      code: "coverage_gap",
      subject: `job:${job}`,
      ...{ operationId: null, severity: "critical", basis: "dead_job", rail: null, scope: null },
      ...{ intents: [], charges: [], amountAtRisk: null, currency: null },
      occurredAt: lastOkAt,
      summary: `The job ${job} did not finish ${since} (${String(periodsMissed)} periods)`,
      advice:
        lastError === null
          ? "See the log of every replica; select from tallyd.job_run where job is this one."
          : `Its last run failed: ${lastError}`,
      evidence: { job, lastOkAt: lastOkAt?.toISOString() ?? null, periodsMissed, lastError },
      look: null,
    };
  });
}
