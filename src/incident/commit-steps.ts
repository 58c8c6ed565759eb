/** Steps of incidents' lives are stored with their histories and messages, in one transaction. */
import type { PoolClient } from "pg";

import { enqueueTells } from "../alert/enqueue.ts";
import type { Told, ToldLately } from "../alert/route.ts";
import { CAP_WINDOW_MS, FLAP_WINDOW_MS, WORSE_WINDOW_MS, route } from "../alert/route.ts";
import { addMs } from "../core/clock.ts";
import type { Incident, Step, StepKind } from "../core/incident.ts";
import { openFloods, toldSince } from "../store/incident-facts.ts";
import type { IncidentEntry } from "../store/incidents.ts";
import { addEntries, saveIncidents } from "../store/incidents.ts";
import { singlesSince } from "../store/outbox.ts";
import { hooksOf } from "./hooks-of.ts";
import { setReminders } from "./remind.ts";
import type { ProgramSettings } from "./tell-programs.ts";
import { tellPrograms } from "./tell-programs.ts";

/** What the settings say about telling. */
export interface TellSettings {
  readonly slackWebhookUrl: string | null;
  readonly slackCriticalWebhookUrl: string | null;
  readonly publicUrl: string | null;
  /** Left out: nobody is reminded. */
  readonly remindersMs?: readonly number[];
  /** Left out: messages carry no buttons. */
  readonly slackSigningSecret?: string | null;
  /** Left out: no such way out. */
  readonly webhook?: ProgramSettings["webhook"];
  readonly pagerDuty?: ProgramSettings["pagerDuty"];
}

/** Stores the steps and tells them; to be called under `lockIncidents`. Gives what was told. */
export async function commitSteps(
  tx: PoolClient,
  settings: TellSettings,
  run: { readonly steps: readonly Step[]; readonly now: Date },
): Promise<ReadonlyMap<string, Told>> {
  const { steps, now } = run;
  const lately = await readLately(tx, steps, now);
  const floods = await openFloods(tx);
  const { tells, told } = route({ steps, hooks: hooksOf(settings), lately, floods });
  await saveIncidents(
    tx,
    steps.map((step) => withTold(step.after, told)),
  );
  await addEntries(
    tx,
    steps.flatMap((step) => entryOf(step, told)),
    now,
  );
  const { publicUrl, slackSigningSecret } = settings;
  const buttons = (slackSigningSecret ?? null) !== null;
  await enqueueTells(tx, tells, { now, publicUrl, buttons });
  await setReminders(tx, settings.remindersMs ?? [], { steps, told, now });
  await tellPrograms(tx, programsOf(settings), { steps, ...lately, now });
  return told;
}

/** The ways to programs; none where they are left out. */
export function programsOf({ webhook, pagerDuty, publicUrl }: TellSettings): ProgramSettings {
  return { webhook: webhook ?? null, pagerDuty: pagerDuty ?? null, publicUrl };
}

async function readLately(tx: PoolClient, steps: readonly Step[], now: Date): Promise<ToldLately> {
  const about = steps.map((step) => step.after.id);
  const flips = await toldSince(tx, about, addMs(now, -FLAP_WINDOW_MS));
  const worse = await toldSince(tx, about, addMs(now, -WORSE_WINDOW_MS));
  const singles = await singlesSince(tx, addMs(now, -CAP_WINDOW_MS));
  return {
    flips: new Map(flips.map((row) => [row.incidentId, row.flips])),
    worsenings: new Map(worse.map((row) => [row.incidentId, row.worsenings])),
    singles: new Map(singles.map((row) => [row.channel, row.count])),
  };
}

function withTold(incident: Incident, told: ReadonlyMap<string, Told>): Incident {
  const entry = told.get(incident.id);
  return entry === undefined ? incident : { ...incident, told: entry.told };
}

const ENTRY_STEPS: Readonly<Record<StepKind, IncidentEntry["step"] | null>> = {
  opened: "opened",
  continued: "opened",
  refreshed: null,
  worsened: "worsened",
  eased: "eased",
  unmuted: "unmuted",
  closed: "closed",
  absorbed: "closed",
  corrected: "corrected",
  reopened: "reopened",
};

// The history shows the course of a trouble; the full lists are in the incident itself.
const ENTRY_CHARGES_MAX = 20;

function entryOf(step: Step, told: ReadonlyMap<string, Told>): readonly IncidentEntry[] {
  const { after, changes } = step;
  const how = told.get(after.id)?.how;
  // A return that flapping had kept quiet is told late, by a run that found nothing new.
  const kind = ENTRY_STEPS[step.kind] ?? (how === undefined ? null : "reopened");
  if (kind === null) return [];
  const { severity, charges, amountAtRisk, currency } = after;
  const evidence = {
    severity,
    charges: charges.slice(0, ENTRY_CHARGES_MAX),
    amountAtRisk: amountAtRisk === null ? null : String(amountAtRisk),
    currency,
    ...(changes.length === 0 ? {} : { changes: changes.map((change) => change.words) }),
    ...(how === undefined ? {} : { told: how }),
  };
  return [{ incidentId: after.id, step: kind, actor: "tallyd", note: step.note, evidence }];
}
