/** Puts what programs are told into the outbox, in the transaction of the incidents. */
import type { PoolClient } from "pg";

import type { PersonStep } from "../alert/act-document.ts";
import { enqueueDigest } from "../alert/enqueue.ts";
import { incidentUrl } from "../alert/message.ts";
import type { Payload } from "../alert/payload.ts";
import type { IncidentEvent } from "../alert/program-events.ts";
import {
  pagerDigest,
  pagerPayload,
  webhookDigest,
  webhookPayload,
} from "../alert/program-events.ts";
import type { PagerAction, ProgramChannel, ProgramTell } from "../alert/program-route.ts";
import { isPaged, roomOf, routePrograms } from "../alert/program-route.ts";
import type { Reminding } from "../alert/reminder.ts";
import { reminderItem } from "../alert/reminder.ts";
import type { ToldLately } from "../alert/route.ts";
import type { Incident, Step } from "../core/incident.ts";
import type { Settings } from "../core/settings.ts";
import { enqueue, newestKinds } from "../store/outbox.ts";
import { presentIncident } from "./present.ts";

/** What the settings say about programs. */
export type ProgramSettings = Pick<Settings, "webhook" | "pagerDuty" | "publicUrl">;

/** Tells programs of the steps of one run. */
export async function tellPrograms(
  tx: PoolClient,
  settings: ProgramSettings,
  run: {
    readonly steps: readonly Step[];
    readonly flips: ToldLately["flips"];
    readonly singles: ReadonlyMap<string, number>;
    readonly now: Date;
  },
): Promise<void> {
  const { steps, flips, singles, now } = run;
  const ways = { webhook: settings.webhook !== null, pagerduty: settings.pagerDuty !== null };
  if (!ways.webhook && !ways.pagerduty) return;
  const ids = steps.map((step) => step.after.id);
  const paged = ways.pagerduty ? await pagedOf(tx, ids) : new Map<string, PagerAction>();
  const said = ways.webhook ? await saidOf(tx, ids) : new Map<string, string>();
  const tells = routePrograms({ steps, ways, flips, singles, said, paged });
  for (const tell of tells) await enqueueTell(tx, settings, tell, now);
}

/**
 * Tells the webhook of reminders, as it is told of other words. Not PagerDuty: an alert there
 * stays, and calls again by the rules of its service.
 */
export async function tellProgramsOfReminders(
  tx: PoolClient,
  settings: ProgramSettings,
  run: {
    readonly remindings: readonly Reminding[];
    readonly singles: ReadonlyMap<string, number>;
    readonly now: Date;
  },
): Promise<void> {
  const { remindings, singles, now } = run;
  if (settings.webhook === null) return;
  if (remindings.length > roomOf(singles, "webhook")) {
    const items = remindings.map(reminderItem);
    const tell = { channel: "webhook", digest: "reminders", severity: "critical", items } as const;
    await enqueueTell(tx, settings, tell, now);
    return;
  }
  for (const { incident, changes } of remindings) {
    const about = eventOf(settings, incident, now);
    const word = "reminded";
    const payload = webhookPayload(about, { word, actor: "tallyd", note: null, changes });
    await add(tx, about, { channel: "webhook", kind: word, payload });
  }
}

/** Tells programs what a person did. */
export async function tellProgramsOfAct(
  tx: PoolClient,
  settings: ProgramSettings,
  act: {
    readonly after: Incident;
    readonly step: PersonStep;
    readonly actor: string;
    readonly note: string | null;
    readonly now: Date;
  },
): Promise<void> {
  const { after, step, actor, note, now } = act;
  const about = eventOf(settings, after, now);
  if (settings.webhook !== null) {
    const payload = webhookPayload(about, { word: step, actor, note, changes: [] });
    await add(tx, about, { channel: "webhook", kind: step, payload });
  }
  if (settings.pagerDuty === null) return;
  const last = (await pagedOf(tx, [after.id])).get(after.id);
  const action = pagerActionOf(step, last, after);
  if (action === null || last === action) return;
  const payload = pagerPayload(about, action);
  await add(tx, about, { channel: "pagerduty", kind: action, payload });
}

function pagerActionOf(
  step: PersonStep,
  last: PagerAction | undefined,
  after: Incident,
): PagerAction | null {
  // What a person takes back is open again, as if it had just been found.
  if (step === "reopened" || step === "unmuted") {
    return after.severity === "critical" ? "trigger" : null;
  }
  if (!isPaged(last)) return null;
  return step === "closed" ? "resolve" : "acknowledge";
}

async function enqueueTell(
  tx: PoolClient,
  settings: ProgramSettings,
  tell: ProgramTell,
  now: Date,
): Promise<void> {
  if ("digest" in tell) {
    await enqueueDigest(tx, tell, {
      now,
      payload: (digest) => ({
        ...(tell.channel === "webhook" ? webhookDigest(digest, now) : pagerDigest(digest)),
        digest,
      }),
    });
    return;
  }
  const { after, changes, note } = tell.step;
  const about = eventOf(settings, after, now);
  if (tell.channel === "pagerduty") {
    const payload = pagerPayload(about, tell.action);
    await add(tx, about, { channel: "pagerduty", kind: tell.action, payload });
    return;
  }
  const words = changes.map((change) => change.words);
  const step = { word: tell.word, actor: "tallyd", note, changes: words };
  const payload = webhookPayload(about, step);
  await add(tx, about, { channel: "webhook", kind: tell.word, payload });
}

function eventOf(settings: ProgramSettings, incident: Incident, at: Date): IncidentEvent {
  const url = incidentUrl(incident, settings.publicUrl);
  return { incident, presented: presentIncident(incident, at), url, at };
}

async function add(
  tx: PoolClient,
  { incident, at }: IncidentEvent,
  message: {
    readonly channel: ProgramChannel;
    readonly kind: string;
    readonly payload: Payload;
  },
): Promise<void> {
  await enqueue(tx, {
    ...{ incidentId: incident.id, channel: message.channel, kind: message.kind },
    ...{ severity: incident.severity, payload: { ...message.payload } },
    ...{ createdAt: at, dueAt: at },
  });
}

async function saidOf(
  tx: PoolClient,
  incidentIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await newestKinds(tx, { channel: "webhook", incidentIds });
  return new Map(rows.map(({ incidentId, kind }) => [incidentId, kind]));
}

async function pagedOf(
  tx: PoolClient,
  incidentIds: readonly string[],
): Promise<ReadonlyMap<string, PagerAction>> {
  const rows = await newestKinds(tx, { channel: "pagerduty", incidentIds });
  return new Map(
    rows.flatMap(({ incidentId, kind }) => (isAction(kind) ? [[incidentId, kind] as const] : [])),
  );
}

function isAction(kind: string): kind is PagerAction {
  return kind === "trigger" || kind === "acknowledge" || kind === "resolve";
}
