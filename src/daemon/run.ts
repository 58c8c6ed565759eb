/** `tallyd run`: open, listen, schedule, wait for the signal, stop in order. */
import { timetable } from "../../jobs/timetable.ts";
import { hookHealth, wayFaults } from "../alert/hook-health.ts";
import { responseOrigins } from "../alert/slack-response.ts";
import { maskDatabaseUrl } from "../config/mask.ts";
import { UnreadableError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import { createAdminApp } from "../http/admin-server.ts";
import type { AdminRouter } from "../http/admin-server.ts";
import { addressError, listen } from "../http/listen.ts";
import type { Listening } from "../http/listen.ts";
import { createMetrics, createProcessMetrics } from "../http/metrics.ts";
import { readiness } from "../http/readiness.ts";
import type { Readiness } from "../http/readiness.ts";
import type { SlackActions } from "../http/slack-actions.ts";
import { startWebhookServer } from "../http/webhook-server.ts";
import type { WebhookServer } from "../http/webhook-server.ts";
import { jobHealth } from "../scheduler/health.ts";
import { createScheduler, settles } from "../scheduler/scheduler.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import { remarksFor } from "../sources/local/remarks.ts";
import type { ShapeRemark } from "../sources/local/shape.ts";
import { blindSources } from "../store/blind-sources.ts";
import { openSight } from "../store/incident-list.ts";
import { schemaState } from "../store/migrate.ts";
import { packageSqlDir, readMigrations } from "../store/sql-files.ts";
import { passFaults } from "./complete-pass.ts";
import { expectedSources } from "./expected-sources.ts";
import { createHeartbeat } from "./heartbeat.ts";
import type { Heartbeat } from "./heartbeat.ts";
import { metricSources } from "./metric-sources.ts";
import { createPipeline } from "./pipeline.ts";
import type { Pipeline } from "./pipeline.ts";
import { POOLER_WARNING, sharesSessions } from "./pooler.ts";
import { startText } from "./start-text.ts";
import type { Tallyd } from "./tallyd.ts";
import { createWork } from "./work.ts";

/** A running daemon. */
export interface Daemon {
  /** The ports it really has; they differ from the settings when those say 0. */
  readonly port: number;
  readonly adminPort: number;
  readonly readiness: () => Promise<Readiness>;
  /** Finishes or gives back the work, within ten seconds; closes tallyd too. Never throws. */
  readonly stop: () => Promise<void>;
}

/** How a daemon is started. */
export interface DaemonOptions {
  readonly version: string;
  /** Further pages for the admin port. */
  readonly routers: readonly AdminRouter[];
  /** Gets the block that says what is watched. */
  readonly say: (text: string) => void;
}

// Of the ten seconds that a stop may take: requests in flight need one commit each; jobs are then
// aborted and have a little more to return their work; the rest is for the databases.
const REQUESTS_GRACE_MS = 3_000;
const JOBS_GRACE_MS = 3_000;
const WEBHOOKS_CLOSE_MAX_MS = 5_000;

/**
 * Starts the daemon. Throws ConfigError for a port that cannot be had or a table that cannot be
 * used; the caller then closes `tallyd`. A team's database or a Stripe that is out of reach is no
 * reason not to start: that is told as blindness, and webhooks are taken all the same.
 */
export async function startDaemon(tallyd: Tallyd, options: DaemonOptions): Promise<Daemon> {
  const { settings, log } = tallyd;
  await checkTable(tallyd);
  if (await sharesSessions(tallyd.pool)) log.error(POOLER_WARNING);
  const pipeline = createPipeline(tallyd);
  const parts = await assemble(tallyd, pipeline, options.version);
  const webhooks = await startWebhooks(tallyd, pipeline);
  let admin: Listening;
  try {
    admin = await startAdmin(tallyd, { ...parts, routers: options.routers });
  } catch (error) {
    await webhooks.close();
    throw error;
  }
  pipeline.start();
  parts.scheduler.start();
  options.say(
    startText(settings, {
      version: options.version,
      ports: { webhooks: webhooks.port, admin: admin.port },
      database: tallyd.embedded
        ? `embedded PostgreSQL in ${settings.dataDir}`
        : maskDatabaseUrl(settings.databaseUrl ?? ""),
      rows: tallyd.local.knownShape()?.kind ?? "out of reach",
    }),
  );
  let stopping: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    await Promise.all([
      // A sender that trickles its bytes must not hold up the rest: it is not acknowledged.
      settles(webhooks.close(), WEBHOOKS_CLOSE_MAX_MS),
      admin.close(REQUESTS_GRACE_MS),
      parts.scheduler.stop(JOBS_GRACE_MS),
      pipeline.stop(JOBS_GRACE_MS),
    ]);
    await tallyd.close();
  };
  return {
    port: webhooks.port,
    adminPort: admin.port,
    readiness: parts.readiness,
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
}

/** A table that cannot be used is a fault of the settings; one out of reach is not. */
async function checkTable(tallyd: Tallyd): Promise<void> {
  try {
    const shape = await tallyd.local.shape();
    logRemarks(tallyd.log, remarksFor(shape, tallyd.settings));
  } catch (error) {
    if (!(error instanceof UnreadableError)) throw error;
    tallyd.log.error("the team's table cannot be read yet; it is tried again", { error });
  }
}

/** Warnings one by one; what is merely weaker than it could be in one line. */
function logRemarks(log: Log, remarks: readonly ShapeRemark[]): void {
  for (const { name, seen, meaning, advice } of remarks.filter(isWarning)) {
    log.warn(`the team's table: ${name}: ${seen}: ${meaning}`, { advice });
  }
  const names = remarks.filter((remark) => !isWarning(remark)).map(({ name }) => name);
  if (names.length === 0) return;
  log.info("the team's table works, and could tell more: see tallyd doctor", { about: names });
}

function isWarning({ status }: ShapeRemark): boolean {
  return status === "warning";
}

interface Parts {
  readonly scheduler: Scheduler;
  readonly readiness: () => Promise<Readiness>;
  readonly metrics: () => Promise<{ readonly contentType: string; readonly body: string }>;
}

/** Jobs, health and metrics: each looks at the others. */
async function assemble(tallyd: Tallyd, pipeline: Pipeline, version: string): Promise<Parts> {
  const { pool, clock, log, locks, replica, settings, startedAt } = tallyd;
  const jobs = timetable(settings);
  const expected = expectedSources(settings);
  const known = (await readMigrations(packageSqlDir())).at(-1)?.version ?? 0;
  const unhealthyJobs = () => jobHealth({ db: pool, clock }, jobs, startedAt);
  const blind = () => blindSources(pool, { expected, now: clock.now(), since: startedAt });
  const ready = (): Promise<Readiness> =>
    readiness({
      pool,
      clock,
      schema: async () => ({ current: (await schemaState(pool)).current, known }),
      pipelineFaults: pipeline.faults,
      blindSources: blind,
      sight: async () => openSight(pool, await tallyd.now()),
      unhealthyJobs,
      wayFaults: async () => {
        const now = await tallyd.now();
        return wayFaults(await hookHealth(pool, now), now);
      },
    });
  const passDeps = { pool, startedAt, readiness: ready, expected, loops: pipeline.states };
  const heartbeat = heartbeatOf(tallyd, () =>
    passFaults({ ...passDeps, jobs: jobs.filter(({ name }) => name !== "heartbeat") }),
  );
  const work = createWork(tallyd, { wake: pipeline.wake, unhealthyJobs, heartbeat });
  const scheduler = createScheduler({ pool, locks, clock, log, replica }, jobs, {
    work,
    pool,
    clock,
    settings,
  });
  tallyd.onLocksLost(scheduler.locksLost);
  const process = createProcessMetrics();
  const own = createMetrics(
    metricSources(tallyd, {
      version,
      pipeline,
      jobStats: scheduler.stats,
      unhealthyJobs,
      expected,
      blind,
      heartbeat,
    }),
  );
  return {
    scheduler,
    readiness: ready,
    metrics: async () => {
      const { contentType, body } = await own();
      return { contentType, body: `${body}\n${await process.body()}` };
    },
  };
}

function heartbeatOf(
  { settings, log }: Tallyd,
  faults: () => Promise<readonly string[]>,
): Heartbeat | null {
  const { heartbeatUrl } = settings;
  return heartbeatUrl === null ? null : createHeartbeat(heartbeatUrl, { faults, log });
}

/** A port that cannot be had is a fault of the settings, whoever meets it. */
async function startWebhooks(tallyd: Tallyd, pipeline: Pipeline): Promise<WebhookServer> {
  const { host, port, stripe } = tallyd.settings;
  const slackActions = slackActionsOf(tallyd);
  const deps = { ...tallyd, settings: stripe, onStored: pipeline.wake, slackActions };
  try {
    return await startWebhookServer(deps, { host, port });
  } catch (error) {
    const cause: unknown = error instanceof Error ? error.cause : undefined;
    if (!(cause instanceof Error)) throw error;
    throw addressError(cause, { host, port, settings: { host: "HOST", port: "PORT" } });
  }
}

function slackActionsOf(tallyd: Tallyd): SlackActions | null {
  const { settings, pool, clock, now, log } = tallyd;
  const { slackSigningSecret: signingSecret, slackWebhookUrl, slackCriticalWebhookUrl } = settings;
  if (signingSecret === null) return null;
  const origins = responseOrigins([slackWebhookUrl, slackCriticalWebhookUrl]);
  return { pool, clock, now, log, signingSecret, origins, programs: settings };
}

async function startAdmin(
  tallyd: Tallyd,
  parts: Parts & { readonly routers: readonly AdminRouter[] },
): Promise<Listening> {
  const { settings, log } = tallyd;
  const app = createAdminApp({
    readiness: parts.readiness,
    metrics: parts.metrics,
    token: settings.adminToken,
    routers: parts.routers,
    log,
  });
  return listen(app, {
    host: settings.adminHost,
    port: settings.adminPort,
    settings: { host: "ADMIN_HOST", port: "ADMIN_PORT" },
  });
}
