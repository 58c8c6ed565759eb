/** Reminders of criticals that nobody has acknowledged, closed or muted. */
import type { Pool, PoolClient } from "pg";

import { digestPayload, enqueueDigest, enqueueNewest } from "../alert/enqueue.ts";
import { digestItem } from "../alert/digest.ts";
import { payloadOf } from "../alert/payload.ts";
import type { Reminding, ReminderTell } from "../alert/reminder.ts";
import { changesSince, reminderDocument, routeReminders } from "../alert/reminder.ts";
import type { Told } from "../alert/route.ts";
import { CAP_WINDOW_MS } from "../alert/route.ts";
import { addMs } from "../core/clock.ts";
import type { Incident, Step } from "../core/incident.ts";
import { openSince } from "../store/incident-facts.ts";
import { addEntries, loadIncidents, lockIncidents } from "../store/incidents.ts";
import { singlesSince } from "../store/outbox.ts";
import type { Reminder, ToldFacts } from "../store/reminders.ts";
import { lockDueReminders, removeReminders, saveReminders } from "../store/reminders.ts";
import { withTx } from "../store/tx.ts";
import { hooksOf } from "./hooks-of.ts";
import type { ProgramSettings } from "./tell-programs.ts";
import { tellProgramsOfReminders } from "./tell-programs.ts";

export interface RemindDeps {
  readonly pool: Pool;
  readonly settings: {
    /** Waits from the news of an incident, growing; the last one repeats. Empty: none. */
    readonly remindersMs: readonly number[];
    readonly slackWebhookUrl: string | null;
    readonly slackCriticalWebhookUrl: string | null;
    readonly publicUrl: string | null;
    /** Left out: reminders carry no buttons. */
    readonly slackSigningSecret?: string | null;
    /** Left out: no such way out. */
    readonly webhook?: ProgramSettings["webhook"];
  };
}

/** What one run did. */
export interface Reminded {
  readonly reminded: number;
  /** Reminders that nobody needs any more: closed, acknowledged, milder. */
  readonly dropped: number;
}

// One transaction and one digest; a storm's thousands follow in the next batches.
export const REMIND_BATCH_MAX = 1_000;
// Ten thousand incidents in one run; what is beyond comes with the next one.
const BATCHES_MAX = 10;
// The history shows the course of a trouble; the full lists are in the incident itself.
const ENTRY_CHARGES_MAX = 20;

/** Sets the reminders of what was just told, in the transaction of the incidents. */
export async function setReminders(
  tx: PoolClient,
  remindersMs: readonly number[],
  run: {
    readonly steps: readonly Step[];
    readonly told: ReadonlyMap<string, Told>;
    readonly now: Date;
  },
): Promise<void> {
  const { steps, told, now } = run;
  const incidents = steps
    .map((step) => step.after)
    .filter(({ id, severity }) => severity === "critical" && told.get(id)?.told === "critical");
  const reminders = incidents.flatMap((incident) => reminderOf(remindersMs, incident, now, now));
  await saveReminders(tx, reminders);
}

/** Sets the reminder of an incident whose acknowledgement, mute or closing was taken back. */
export async function remindLater(
  tx: PoolClient,
  remindersMs: readonly number[],
  incident: Incident,
  now: Date,
): Promise<void> {
  if (incident.severity !== "critical" || incident.told === null) return;
  await saveReminders(tx, reminderOf(remindersMs, incident, now, now));
}

/** Reminds of what is due, in batches. `now` is the database's time. */
export async function remindDue(deps: RemindDeps, now: Date): Promise<Reminded> {
  const sum = { reminded: 0, dropped: 0 };
  if (deps.settings.remindersMs.length === 0) return sum;
  for (let batch = 0; batch < BATCHES_MAX; batch += 1) {
    const done = await remindBatch(deps, now);
    sum.reminded += done.reminded;
    sum.dropped += done.dropped;
    if (done.due < REMIND_BATCH_MAX) break;
  }
  return sum;
}

async function remindBatch(
  { pool, settings }: RemindDeps,
  now: Date,
): Promise<Reminded & { readonly due: number }> {
  return withTx(pool, async (tx) => {
    // What a judging does to an incident at this moment must be seen.
    await lockIncidents(tx);
    const due = await lockDueReminders(tx, { now, limit: REMIND_BATCH_MAX });
    const ids = due.map((reminder) => reminder.incidentId);
    const incidents = await loadIncidents(tx, { ids, operations: [], subjects: [] });
    const byId = new Map(incidents.map((incident) => [incident.id, incident]));
    const known = due.flatMap((reminder) => {
      const incident = byId.get(reminder.incidentId);
      return incident === undefined ? [] : [{ reminder, incident, fate: fateOf(incident, now) }];
    });
    const told = known.filter(({ fate }) => fate === "remind");
    const muted = known.flatMap(({ reminder, fate }) =>
      fate instanceof Date ? [{ ...reminder, dueAt: fate }] : [],
    );
    const since = await openSince(
      tx,
      told.map(({ incident }) => incident.id),
    );
    const remindings = told.map(({ reminder, incident }): Reminding => {
      const from = since.get(incident.id) ?? incident.firstSeen;
      const openForMs = now.getTime() - from.getTime();
      return { incident, openForMs, changes: changesSince(reminder.facts, incident) };
    });
    await tell(tx, settings, remindings, now);
    const next = told.flatMap(({ reminder, incident }) =>
      reminderOf(settings.remindersMs, incident, reminder.anchorAt, now),
    );
    await saveReminders(tx, [...muted, ...next]);
    const kept = new Set([...muted, ...next].map((reminder) => reminder.incidentId));
    const dropped = ids.filter((id) => !kept.has(id));
    await removeReminders(tx, dropped);
    return { due: due.length, reminded: told.length, dropped: dropped.length };
  });
}

/** A date: not before then. A mute without an end is lifted by news, which sets a reminder anew. */
function fateOf(incident: Incident, now: Date): "remind" | "drop" | Date {
  const { status, severity, told, mutedUntil } = incident;
  if (severity !== "critical" || told === null) return "drop";
  if (status === "open") return "remind";
  if (status !== "muted" || mutedUntil === null) return "drop";
  return mutedUntil > now ? mutedUntil : "remind";
}

function reminderOf(
  remindersMs: readonly number[],
  incident: Incident,
  anchorAt: Date,
  now: Date,
): readonly Reminder[] {
  const last = remindersMs.at(-1);
  if (last === undefined) return [];
  // Waits that passed while nothing ran are one reminder and not many.
  const next = remindersMs.map((ms) => addMs(anchorAt, ms)).find((at) => at > now);
  const dueAt = next ?? addMs(now, last);
  return [{ incidentId: incident.id, dueAt, anchorAt, facts: factsOf(incident) }];
}

function factsOf({ charges, amountAtRisk, currency, count }: Incident): ToldFacts {
  const amount = amountAtRisk === null ? null : String(amountAtRisk);
  return { charges: charges.length, amountAtRisk: amount, currency, count };
}

async function tell(
  tx: PoolClient,
  settings: RemindDeps["settings"],
  remindings: readonly Reminding[],
  now: Date,
): Promise<void> {
  if (remindings.length === 0) return;
  const rows = await singlesSince(tx, addMs(now, -CAP_WINDOW_MS));
  const singles = new Map(rows.map(({ channel, count }) => [channel, count]));
  const tells = routeReminders({ remindings, hooks: hooksOf(settings), singles });
  for (const one of tells) await enqueueReminder(tx, settings, one, now);
  const programs = { ...settings, webhook: settings.webhook ?? null, pagerDuty: null };
  await tellProgramsOfReminders(tx, programs, { remindings, singles, now });
  const alone = new Set(
    tells.flatMap((one) => (one.kind === "single" ? [one.about.incident.id] : [])),
  );
  const entries = remindings.map(({ incident, changes }) => ({
    incidentId: incident.id,
    step: "reminded" as const,
    actor: "tallyd",
    note: changes.length === 0 ? null : changes.join("; "),
    evidence: {
      ...{ severity: incident.severity, charges: incident.charges.slice(0, ENTRY_CHARGES_MAX) },
      ...{ amountAtRisk: factsOf(incident).amountAtRisk, currency: incident.currency },
      ...{ count: incident.count, told: alone.has(incident.id) ? "single" : "digest" },
    },
  }));
  await addEntries(tx, entries, now);
}

async function enqueueReminder(
  tx: PoolClient,
  settings: RemindDeps["settings"],
  one: ReminderTell,
  now: Date,
): Promise<void> {
  if (one.kind === "digest") {
    await enqueueDigest(tx, one, { now, payload: digestPayload });
    return;
  }
  const { channel, about } = one;
  const { incident } = about;
  const item = digestItem(incident, { first: false, over: false });
  const { publicUrl, slackSigningSecret } = settings;
  const buttons = (slackSigningSecret ?? null) !== null;
  const payload = { ...payloadOf(reminderDocument(about, { publicUrl, buttons }), { item }) };
  const message = { incidentId: incident.id, channel, kind: "reminded" };
  await enqueueNewest(tx, {
    ...message,
    severity: "critical",
    payload,
    createdAt: now,
    dueAt: now,
  });
}
