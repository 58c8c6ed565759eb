/**
 * All jobs. What a webhook sets off (apply, match, judge, deliver) waits for no job: that is the
 * fast path, src/daemon/pipeline.ts. Windows come from stored cursors, so no tick that is missed
 * or run twice loses or doubles anything.
 */
import type { Settings } from "../src/core/settings.ts";
import type { JobDeps } from "../src/daemon/work.ts";
import type { Job } from "../src/scheduler/job.ts";
import { audit } from "./audit.ts";
import { dailyDigest } from "./daily-digest.ts";
import { deliverAlerts } from "./deliver-alerts.ts";
import { drainRefetch } from "./drain-refetch.ts";
import { heartbeat } from "./heartbeat.ts";
import { judgeSources } from "./judge-sources.ts";
import { prune } from "./prune.ts";
import { readLocalFull } from "./read-local-full.ts";
import { readLocal } from "./read-local.ts";
import { remind } from "./remind.ts";
import { resolve } from "./resolve.ts";
import { scanChains } from "./scan-chains.ts";
import { sweepEvents } from "./sweep-events.ts";
import { walkLists } from "./walk-lists.ts";
import { walkSlowLists } from "./walk-slow-lists.ts";

/** The jobs under these settings; those that read Stripe need its key. */
export function timetable(settings: Settings): readonly Job<JobDeps>[] {
  const stripe = [sweepEvents, walkLists(settings), walkSlowLists(settings), drainRefetch];
  return [
    readLocal(settings),
    readLocalFull(settings),
    ...(settings.stripe.apiKey === null ? [] : stripe),
    ...(settings.chains.length === 0 ? [] : [scanChains(settings)]),
    resolve,
    ...(settings.remindersMs.length === 0 ? [] : [remind]),
    ...(settings.digestAt === null ? [] : [dailyDigest]),
    deliverAlerts,
    judgeSources,
    ...(settings.heartbeatUrl === null ? [] : [heartbeat]),
    audit(settings),
    prune,
  ];
}
