/** What a person does to an incident: acknowledge, mute, close, and take that back. */
import type { Pool, PoolClient } from "pg";

import type { PersonStep } from "../alert/act-document.ts";
import { clip } from "../alert/text.ts";
import { RequestError } from "../core/errors.ts";
import type { Incident, IncidentStatus } from "../core/incident.ts";
import { verdictOf } from "../core/incident.ts";
import { addEntries, failedRefundsOf, lockIncident, saveIncidents } from "../store/incidents.ts";
import { withTx } from "../store/tx.ts";
import { hasMark, worseSince } from "../store/incident-list.ts";
import { remindLater } from "./remind.ts";
import type { PeopleSettings } from "./tell-people.ts";
import { tellPeopleOfAct } from "./tell-people.ts";
import type { ProgramSettings } from "./tell-programs.ts";
import { tellProgramsOfAct } from "./tell-programs.ts";

/** Who acts on which incident, and why. */
export interface Act {
  readonly id: string;
  readonly actor: string;
  /** `null`: nothing was said. */
  readonly note: string | null;
  readonly now: Date;
  /** Of a request that may come again: an act with a mark that is known changes nothing. */
  readonly mark?: string;
  /** When the facts were so that the person saw; left out or `null`: they are those of now. */
  readonly seenAt?: Date | null;
  /** Programs that are told of it; left out: none. */
  readonly programs?: ProgramSettings;
  /** Left out: people see it themselves, where it was done. */
  readonly people?: PeopleSettings;
}

// The CHECKs of tallyd.incident_entry.
const ACTOR_CHARS_MAX = 128;
const NOTE_CHARS_MAX = 4_000;
const WORSE_CHARS_MAX = 300;

/** Marks an incident as seen. Throws `RequestError` when there is none, or it is closed. */
export async function acknowledge(pool: Pool, act: Act): Promise<Incident> {
  return withLock(pool, act, async (tx) => {
    const before = await openIncident(tx, act, "acknowledged");
    const after: Incident = { ...before, status: "acknowledged", mutedUntil: null, verdict: null };
    return keep(tx, act, { before: before.status, after, step: "acknowledged", evidence: {} });
  });
}

/**
 * Silences an incident until a time, or until its facts get worse, whichever is first; `until`
 * `null`: only the latter. Throws `RequestError` on an unknown or closed one, or a past time.
 */
export async function mute(
  pool: Pool,
  act: Act & { readonly until: Date | null },
): Promise<Incident> {
  const { until } = act;
  if (until !== null && until <= act.now) {
    const hint = "a time to come is allowed";
    throw new RequestError("not_possible", `--until ${until.toISOString()} has passed`, [hint]);
  }
  return withLock(pool, act, async (tx) => {
    const before = await openIncident(tx, act, "muted");
    const verdict = await verdictNow(tx, before);
    const after: Incident = { ...before, status: "muted", mutedUntil: until, verdict };
    const evidence = { until: until?.toISOString() ?? null };
    return keep(tx, act, { before: before.status, after, step: "muted", evidence });
  });
}

/**
 * Closes an incident by a person's verdict about the facts as they are ("not a duplicate"): it
 * stays closed until they get worse. One that facts had closed can be given a verdict too. Throws
 * `RequestError` when there is no such incident.
 */
export async function closeByPerson(pool: Pool, act: Act): Promise<Incident> {
  return withLock(pool, act, async (tx) => {
    const before = await existing(tx, act.id);
    const verdict = await verdictNow(tx, before);
    const after: Incident = {
      ...before,
      ...{ status: "closed", closedBy: "person", closedAt: act.now, mutedUntil: null, verdict },
    };
    return keep(tx, act, { before: before.status, after, step: "closed", evidence: {} });
  });
}

/**
 * Takes back what a person did: an acknowledgement, a mute, a closing by a person. Throws
 * `RequestError` when there is no such incident, or nothing to take back.
 */
export async function reopenByPerson(
  pool: Pool,
  act: Act & {
    /** Left out: nobody is reminded of it. */
    readonly remindersMs?: readonly number[];
  },
): Promise<Incident> {
  return withLock(pool, act, async (tx) => {
    const before = await existing(tx, act.id);
    const { status } = before;
    if (status === "open" || (status === "closed" && before.closedBy !== "person")) {
      const hint = "only what a person acknowledged, muted or closed can be taken back";
      const why = status === "open" ? "is open" : "was closed by facts, which alone reopen it";
      throw new RequestError("not_possible", `incident ${act.id} ${why}`, [hint]);
    }
    const after: Incident = {
      ...before,
      ...{ status: "open", closedBy: null, closedAt: null, mutedUntil: null, verdict: null },
    };
    await remindLater(tx, act.remindersMs ?? [], after, act.now);
    const step = status === "muted" ? "unmuted" : "reopened";
    return keep(tx, act, { before: status, after, step, evidence: {} });
  });
}

/** Runs `work` unless the same request was carried out before, or it is about facts of the past. */
async function withLock(
  pool: Pool,
  { id, mark, seenAt }: Act,
  work: (tx: PoolClient) => Promise<Incident>,
): Promise<Incident> {
  return withTx(pool, async (tx) => {
    // Under the lock, so that of two at once the second sees the first one's line.
    const incident = await lockIncident(tx, id);
    if (incident === null) return work(tx);
    if (mark !== undefined && (await hasMark(tx, id, mark))) return incident;
    // A word about two charges is none about the third that came since.
    const worse = seenAt instanceof Date ? await worseSince(tx, id, seenAt) : [];
    if (worse.length === 0) return work(tx);
    const what = clip(worse.join("; "), WORSE_CHARS_MAX);
    const hint = `look at its newest message, or at \`tallyd incidents show ${id}\``;
    throw new RequestError("not_possible", `incident ${id} got worse since (${what}): ${hint}`, []);
  });
}

async function existing(tx: PoolClient, id: string): Promise<Incident> {
  const incident = await lockIncident(tx, id);
  if (incident !== null) return incident;
  const hint = "`tallyd incidents list --all` shows the ids (inc_…) of all";
  throw new RequestError("not_known", `there is no incident "${id}"`, [hint]);
}

async function openIncident(tx: PoolClient, act: Act, verb: string): Promise<Incident> {
  const incident = await existing(tx, act.id);
  if (incident.status !== "closed") return incident;
  const hint = `only an open one can be ${verb}`;
  throw new RequestError("not_possible", `incident ${act.id} is closed`, [hint]);
}

async function verdictNow(tx: PoolClient, incident: Incident): Promise<Incident["verdict"]> {
  const failed = await failedRefundsOf(tx, [incident.id]);
  return verdictOf(incident, failed.get(incident.id) ?? []);
}

async function keep(
  tx: PoolClient,
  act: Act,
  change: {
    readonly before: IncidentStatus;
    readonly after: Incident;
    readonly step: PersonStep;
    readonly evidence: Readonly<Record<string, unknown>>;
  },
): Promise<Incident> {
  const { after, step } = change;
  const amountAtRisk = after.amountAtRisk === null ? null : String(after.amountAtRisk);
  const facts = { severity: after.severity, charges: after.charges.slice(0, 20), amountAtRisk };
  const mark = act.mark === undefined ? {} : { mark: act.mark };
  const evidence = { from: change.before, ...facts, ...change.evidence, ...mark };
  const actor = fit(act.actor, ACTOR_CHARS_MAX) || "unknown";
  const note = act.note === null ? null : fit(act.note, NOTE_CHARS_MAX);
  await saveIncidents(tx, [after]);
  await addEntries(tx, [{ incidentId: after.id, step, actor, note, evidence }], act.now);
  const told = { after, step, actor, note, now: act.now };
  if (act.programs !== undefined) await tellProgramsOfAct(tx, act.programs, told);
  if (act.people !== undefined) await tellPeopleOfAct(tx, act.people, told);
  return after;
}

/** PostgreSQL refuses NUL and halves of surrogate pairs. */
function fit(text: string, max: number): string {
  return clip(text.replaceAll(/[\0\p{Cs}]/gu, ""), max);
}
