/** What each metric is and where its figures come from. */
import type { MetricSource, Sample } from "../http/metrics.ts";
import type { UnhealthyJob } from "../scheduler/health.ts";
import type { JobStats } from "../scheduler/job-runner.ts";
import { stripeScopes } from "../core/scope.ts";
import { addMs } from "../core/clock.ts";
import { readHooks } from "../store/hooks.ts";
import type { BlindSource, ExpectedSource } from "../store/blind-sources.ts";
import {
  clockOffsetMs,
  inboxOverview,
  incidentCounts,
  outboxOverview,
  resolutionCounts,
} from "../store/overview.ts";
import { monthlyReads } from "../store/read-counts.ts";
import { listSources } from "../store/sources.ts";
import { readTallies } from "../store/tallies.ts";
import { chainMetrics } from "./chain-metrics.ts";
import type { Heartbeat } from "./heartbeat.ts";
import type { Pipeline } from "./pipeline.ts";
import type { Tallyd } from "./tallyd.ts";

/** What the metrics look at, beside the open tallyd. */
export interface MetricParts {
  readonly version: string;
  readonly pipeline: Pipeline;
  readonly jobStats: () => ReadonlyMap<string, Readonly<JobStats>>;
  readonly unhealthyJobs: () => Promise<readonly UnhealthyJob[]>;
  readonly expected: readonly ExpectedSource[];
  readonly blind: () => Promise<readonly BlindSource[]>;
  /** `null`: no address is set. */
  readonly heartbeat: Heartbeat | null;
}

const SECOND_MS = 1_000;
const RESOLUTIONS_SINCE_MS = 30 * 86_400_000;

/** Every metric of a replica; names get the prefix `tallyd_`. */
export function metricSources(tallyd: Tallyd, parts: MetricParts): MetricSource[] {
  return [
    gauge("build_info", "Version of this replica; always 1", ["version", "node"], () =>
      Promise.resolve([one(1, { version: parts.version, node: process.version })]),
    ),
    ...inboxMetrics(tallyd, parts),
    ...sourceMetrics(tallyd, parts),
    ...chainMetrics(tallyd),
    ...incidentMetrics(tallyd),
    ...jobMetrics(parts),
    ...heartbeatMetrics(parts),
    gauge("clock_offset_seconds", "How far another clock is ahead of ours", ["against"], () =>
      clockOffsets(tallyd),
    ),
  ];
}

function inboxMetrics(tallyd: Tallyd, { pipeline }: MetricParts): MetricSource[] {
  const { pool, clock } = tallyd;
  return [
    gauge("inbox_events", "Events that wait or were given up", ["status"], async () =>
      (await inboxOverview(pool, clock.now())).byStatus.map(({ status, events }) =>
        one(events, { status }),
      ),
    ),
    gauge("inbox_lag_seconds", "Age of the oldest waiting event; 0: none", [], async () => [
      one((await inboxOverview(pool, clock.now())).lagSeconds),
    ]),
    counter(
      "requests_set_aside_total",
      "Webhooks refused or ignored, all replicas",
      ["reason"],
      async () =>
        [...(await readTallies(pool)).values()].map(({ name, total }) =>
          one(Number(total), { reason: name }),
        ),
    ),
    counter("pipeline_total", "What the fast path of this replica did", ["what"], () =>
      Promise.resolve(
        Object.entries(pipeline.counts()).map(([what, count]) => one(count, { what })),
      ),
    ),
    gauge("pipeline_failures_in_row", "Failures in a row of a loop of this replica", ["loop"], () =>
      Promise.resolve(
        [...pipeline.states()].map(([loop, state]) => one(state.failuresInRow, { loop })),
      ),
    ),
  ];
}

function sourceMetrics(tallyd: Tallyd, parts: MetricParts): MetricSource[] {
  const { pool, clock, settings } = tallyd;
  const key = ["source", "scope"];
  const age = (at: Date): number => (clock.now().getTime() - at.getTime()) / SECOND_MS;
  return [
    gauge("source_ok_age_seconds", "Time since the last complete read", key, async () =>
      (await listSources(pool)).flatMap(({ source, scope, lastOkAt }) =>
        lastOkAt === null ? [] : [one(age(lastOkAt), { source, scope })],
      ),
    ),
    gauge("source_failures", "Failures in a row; 0: healthy", key, async () =>
      (await listSources(pool)).map(({ source, scope, failures }) =>
        one(failures, { source, scope }),
      ),
    ),
    gauge("source_blind", "1: not read for too long", key, async () => {
      const blind = await parts.blind();
      return parts.expected.map(({ source, scope }) => {
        const is = blind.some((row) => row.source === source && row.scope === scope);
        return one(is ? 1 : 0, { source, scope });
      });
    }),
    ...budgetMetrics(() =>
      monthlyReads(pool, { now: clock.now(), scopes: stripeScopes(settings.stripe) }),
    ),
  ];
}

function budgetMetrics(read: () => ReturnType<typeof monthlyReads>): MetricSource[] {
  return [
    gauge("stripe_reads_used", "Reads of the last 30 days", ["scope"], async () =>
      (await read()).map(({ scope, used }) => one(Number(used), { scope })),
    ),
    gauge("stripe_reads_allowed", "Reads that Stripe allows in 30 days", ["scope"], async () =>
      (await read()).map(({ scope, allowed }) => one(Number(allowed), { scope })),
    ),
  ];
}

function incidentMetrics(tallyd: Tallyd): MetricSource[] {
  const { pool, clock } = tallyd;
  return [
    gauge("incidents", "Incidents", ["code", "severity", "status"], async () =>
      (await incidentCounts(pool)).map(({ incidents, ...labels }) => one(incidents, labels)),
    ),
    gauge("outbox_pending", "Messages that are not sent", ["channel"], async () =>
      (await outboxOverview(pool, clock.now())).map(({ channel, pending }) =>
        one(pending, { channel }),
      ),
    ),
    gauge("outbox_age_seconds", "Age of the oldest of them; 0: none", ["channel"], async () =>
      (await outboxOverview(pool, clock.now())).map(({ channel, ageSeconds }) =>
        one(ageSeconds, { channel }),
      ),
    ),
    gauge("hook_failures", "Failures in a row of a way out", ["channel"], async () =>
      (await readHooks(pool)).map(({ channel, failures }) => one(failures, { channel })),
    ),
    gauge("hook_dead", "1: gone until a person sets a new one", ["channel"], async () =>
      (await readHooks(pool)).map(({ channel, failingSince, lastErrorCode }) =>
        one(failingSince !== null && lastErrorCode === "dead" ? 1 : 0, { channel }),
      ),
    ),
    gauge("resolutions", "Decisions of the last 30 days", ["decision", "outcome"], async () =>
      (await resolutionCounts(pool, addMs(clock.now(), -RESOLUTIONS_SINCE_MS))).map(
        ({ resolutions, ...labels }) => one(resolutions, labels),
      ),
    ),
  ];
}

function jobMetrics(parts: MetricParts): MetricSource[] {
  const perJob = (read: (stats: Readonly<JobStats>) => number | null) => (): Promise<Sample[]> =>
    Promise.resolve(
      [...parts.jobStats()].flatMap(([name, stats]) => {
        const value = read(stats);
        return value === null ? [] : [one(value, { job_name: name })];
      }),
    );
  const labels = ["job_name"];
  return [
    counter(
      "job_runs_total",
      "Runs on this replica",
      labels,
      perJob((stats) => stats.runs),
    ),
    counter(
      "job_failures_total",
      "Failed runs",
      labels,
      perJob((stats) => stats.failures),
    ),
    counter(
      "job_timeouts_total",
      "Runs over their limit",
      labels,
      perJob((stats) => stats.timeouts),
    ),
    counter(
      "job_overlaps_total",
      "Ticks skipped because the run before went on",
      labels,
      perJob((stats) => stats.overlaps),
    ),
    counter(
      "job_not_elected_total",
      "Ticks that another replica ran",
      labels,
      perJob((stats) => stats.notElected),
    ),
    gauge(
      "job_duration_seconds",
      "Duration of the newest run",
      labels,
      perJob((stats) => (stats.lastMs === null ? null : stats.lastMs / SECOND_MS)),
    ),
    gauge("job_unhealthy", "1: no replica finished it for three periods", labels, async () => {
      const dead = await parts.unhealthyJobs();
      return [...parts.jobStats().keys()].map((name) =>
        one(dead.some(({ job }) => job === name) ? 1 : 0, { job_name: name }),
      );
    }),
  ];
}

function heartbeatMetrics({ heartbeat }: MetricParts): MetricSource[] {
  if (heartbeat === null) return [];
  const help = "Heartbeats of this replica: sent, failed, or withheld because it is not well";
  return [
    counter("heartbeats_total", help, ["result"], () =>
      Promise.resolve(
        Object.entries<number>({ ...heartbeat.counts() }).map(([result, count]) =>
          one(count, { result }),
        ),
      ),
    ),
  ];
}

async function clockOffsets(tallyd: Tallyd): Promise<Sample[]> {
  const { pool, clock, stripe } = tallyd;
  const database = await clockOffsetMs(pool, clock.now);
  // The client says how far we are ahead; the metric how far the other is.
  const ahead = stripe?.clockAheadMs() ?? null;
  return [
    one(database / SECOND_MS, { against: "database" }),
    ...(ahead === null ? [] : [one(-ahead / SECOND_MS, { against: "stripe" })]),
  ];
}

type Samples = () => Promise<readonly Sample[]>;

function gauge(
  name: string,
  help: string,
  labels: readonly string[],
  samples: Samples,
): MetricSource {
  return { name, help, labels, kind: "gauge", samples };
}

function counter(
  name: string,
  help: string,
  labels: readonly string[],
  samples: Samples,
): MetricSource {
  return { name, help, labels, kind: "counter", samples };
}

function one(value: number, labels: Readonly<Record<string, string>> = {}): Sample {
  return { labels, value };
}
