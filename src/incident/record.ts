/** From the findings of one run to incidents and messages, in one transaction. */
import type { Pool, PoolClient } from "pg";

import type { Told, ToldLately } from "../alert/route.ts";
import { CAP_WINDOW_MS, FLAP_WINDOW_MS, WORSE_WINDOW_MS, route } from "../alert/route.ts";
import { enqueueTells } from "../alert/enqueue.ts";
import { addMs } from "../core/clock.ts";
import type { Finding } from "../core/finding.ts";
import type { Incident, Step, StepKind } from "../core/incident.ts";
import type { Judged } from "../detect/diff.ts";
import { diff } from "../detect/diff.ts";
import type { FoldedFinding } from "../detect/fold.ts";
import { foldFindings } from "../detect/fold.ts";
import type { IncidentEntry } from "../store/incidents.ts";
import {
  addEntries,
  failedRefundsOf,
  loadByCharges,
  loadIncidents,
  lockIncidents,
  saveIncidents,
} from "../store/incidents.ts";
import { correctionsOf, openFloods, toldSince } from "../store/incident-facts.ts";
import { singlesSince } from "../store/outbox.ts";
import { withTx } from "../store/tx.ts";
import { hooksOf } from "./hooks-of.ts";
import { setReminders } from "./remind.ts";
import { storable } from "./storable.ts";
import type { ProgramSettings } from "./tell-programs.ts";
import { tellPrograms } from "./tell-programs.ts";

export interface RecordDeps {
  readonly pool: Pool;
  readonly settings: {
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
  };
}

export interface RecordInput {
  readonly findings: readonly Finding[];
  readonly judged: Judged;
  readonly now: Date;
}

/** What one run did to the incidents. */
export interface Recorded {
  /** Findings after those of one (code, subject) were folded. */
  readonly found: number;
  readonly opened: number;
  readonly worsened: number;
  readonly refreshed: number;
  readonly closed: number;
  readonly reopened: number;
  /** Incidents that a message is about. */
  readonly told: number;
}

const NOTHING: Recorded = {
  ...{ found: 0, opened: 0, worsened: 0, refreshed: 0, closed: 0, reopened: 0, told: 0 },
};

/**
 * Opens, refreshes, worsens, closes and reopens incidents by the findings of one run, and puts the
 * messages about them into the outbox, all or nothing (invariants 6 and 7).
 */
export async function recordFindings(deps: RecordDeps, input: RecordInput): Promise<Recorded> {
  const findings = foldFindings(input.findings.map(storable));
  if (findings.length === 0 && judgedNothing(input.judged)) return NOTHING;
  return withTx(deps.pool, async (tx) => {
    await lockIncidents(tx);
    const steps = await decide(tx, findings, input);
    const lately = await readLately(tx, steps, input.now);
    const { tells, told } = route({
      steps,
      hooks: hooksOf(deps.settings),
      lately,
      floods: await openFloods(tx),
    });
    await saveIncidents(
      tx,
      steps.map((step) => withTold(step.after, told)),
    );
    await addEntries(
      tx,
      steps.flatMap((step) => entryOf(step, told)),
      input.now,
    );
    const { publicUrl, slackSigningSecret } = deps.settings;
    const buttons = (slackSigningSecret ?? null) !== null;
    await enqueueTells(tx, tells, { now: input.now, publicUrl, buttons });
    await setReminders(tx, deps.settings.remindersMs ?? [], { steps, told, now: input.now });
    await tellPrograms(tx, programsOf(deps.settings), { steps, ...lately, now: input.now });
    return count(findings, steps, told);
  });
}

function programsOf({ webhook, pagerDuty, publicUrl }: RecordDeps["settings"]): ProgramSettings {
  return { webhook: webhook ?? null, pagerDuty: pagerDuty ?? null, publicUrl };
}

function judgedNothing(judged: Judged): boolean {
  return (
    judged.operations !== "all" &&
    judged.operations.size === 0 &&
    judged.subjects !== "all" &&
    judged.subjects.size === 0
  );
}

async function decide(
  tx: PoolClient,
  findings: readonly FoldedFinding[],
  input: RecordInput,
): Promise<readonly Step[]> {
  const found = new Set(findings.map((finding) => finding.id));
  const incidents = await loadConcerned(tx, findings, input.judged);
  // Those that may close, and those that a person or a closing left with a verdict.
  const gone = incidents.filter((incident) => !found.has(incident.id));
  const weighed = incidents.filter(
    (incident) => incident.verdict !== null || !found.has(incident.id),
  );
  return diff({
    findings,
    incidents,
    judged: input.judged,
    now: input.now,
    failedRefunds: await failedRefundsOf(tx, ids(weighed)),
    corrections: await correctionsOf(tx, ids(gone)),
  });
}

async function loadConcerned(
  tx: PoolClient,
  findings: readonly FoldedFinding[],
  judged: Judged,
): Promise<readonly Incident[]> {
  const { operations, subjects } = judged;
  const known = await loadIncidents(tx, {
    ids: findings.map((finding) => finding.id),
    operations: operations === "all" ? "all" : [...operations],
    subjects: subjects === "all" ? "all" : [...subjects],
  });
  const knownIds = new Set(ids(known));
  const unknown = findings.filter((finding) => !knownIds.has(finding.id));
  if (unknown.length === 0) return known;
  const older = await loadByCharges(tx, {
    charges: unknown.flatMap((finding) => finding.charges),
    codes: [...new Set(unknown.map((finding) => finding.code))],
  });
  return [...known, ...older.filter((incident) => !knownIds.has(incident.id))];
}

function ids(incidents: readonly Incident[]): string[] {
  return incidents.map((incident) => incident.id);
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

function count(
  findings: readonly FoldedFinding[],
  steps: readonly Step[],
  told: ReadonlyMap<string, Told>,
): Recorded {
  const of = (...kinds: readonly StepKind[]): number =>
    steps.filter((step) => kinds.includes(step.kind)).length;
  return {
    found: findings.length,
    opened: of("opened"),
    worsened: of("worsened"),
    refreshed: of("refreshed", "eased", "unmuted", "continued"),
    closed: of("closed", "corrected", "absorbed"),
    reopened: of("reopened"),
    told: told.size,
  };
}
