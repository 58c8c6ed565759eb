/** From the findings of one run to incidents and messages, in one transaction. */
import type { Pool, PoolClient } from "pg";

import type { Told } from "../alert/route.ts";
import type { Finding } from "../core/finding.ts";
import type { Incident, Step, StepKind } from "../core/incident.ts";
import type { Judged } from "../detect/diff.ts";
import { diff } from "../detect/diff.ts";
import type { FoldedFinding } from "../detect/fold.ts";
import { foldFindings } from "../detect/fold.ts";
import { correctionsOf } from "../store/incident-facts.ts";
import {
  failedRefundsOf,
  loadByCharges,
  loadIncidents,
  lockIncidents,
} from "../store/incidents.ts";
import { withTx } from "../store/tx.ts";
import type { TellSettings } from "./commit-steps.ts";
import { commitSteps } from "./commit-steps.ts";
import { storable } from "./storable.ts";

export interface RecordDeps {
  readonly pool: Pool;
  readonly settings: TellSettings;
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
    const told = await commitSteps(tx, deps.settings, { steps, now: input.now });
    return count(findings, steps, told);
  });
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
