/** The life of incidents, as a pure function: findings of one run against what is known. */
import type { Code } from "../core/finding.ts";
import type { Correction, Incident, Step, StepKind } from "../core/incident.ts";
import { statusAt, verdictOf } from "../core/incident.ts";
import type { Finding } from "../core/finding.ts";
import type { FoldedFinding } from "./fold.ts";
import { foldFindings } from "./fold.ts";
import { isMilder, whatGotWorse } from "./worse.ts";

/**
 * What a run looked at. An incident closes only when it was looked at: its operation (or, without
 * one, its subject) was judged, its detector ran to its end, and the sources of its scope were
 * healthy. Nothing closes because it aged out of a window.
 */
export interface Judged {
  readonly operations: ReadonlySet<string> | "all";
  /** Subjects of incidents without an operation: sources, caps. */
  readonly subjects: ReadonlySet<string> | "all";
  /** Detectors that ran completely. */
  readonly codes: ReadonlySet<Code> | "all";
  /** Scopes with a source that is blind: incidents of operations there do not close. */
  readonly blindScopes: ReadonlySet<string>;
}

export interface DiffInput {
  readonly findings: readonly Finding[];
  /**
   * Incidents of the findings' (code, subject), closed ones too; the open ones of what was judged;
   * and those whose charges the findings name.
   */
  readonly incidents: readonly Incident[];
  readonly judged: Judged;
  readonly now: Date;
  /** Incident id -> refunds of its charges that failed. An id that is missing has none. */
  readonly failedRefunds?: ReadonlyMap<string, readonly string[]>;
  /** Incident id -> what turned out, for incidents that may close. */
  readonly corrections?: ReadonlyMap<string, Correction>;
}

/** Decides every incident's step. A step for each finding, and one for each incident that ends. */
export function diff(input: DiffInput): readonly Step[] {
  const findings = foldFindings(input.findings);
  const found = new Set(findings.map((finding) => finding.id));
  const byId = new Map(input.incidents.map((incident) => [incident.id, incident]));
  const gone = input.incidents.filter((incident) => !found.has(incident.id));
  const goneByCharge = indexByCharge(gone, (incident) => incident);
  const heirs = new Map<string, Step>();
  const steps = findings.map((finding): Step => {
    const known = byId.get(finding.id);
    if (known !== undefined) return seenAgain(input, known, finding);
    const older = finding.charges
      .flatMap((charge) => goneByCharge.get(charge) ?? [])
      .find((incident) => !heirs.has(incident.id) && goesOn(incident, finding));
    if (older === undefined) return opened(input, finding);
    const step = inherit(input, older, finding);
    heirs.set(older.id, step);
    return step;
  });
  const news = indexByCharge(
    steps.filter((step) => NEWS.has(step.kind)),
    (step) => step.after,
  );
  const ends = gone.flatMap((incident): readonly Step[] => {
    if (incident.status === "closed") return [];
    const heir = heirs.get(incident.id);
    if (heir !== undefined) return [absorbed(input, incident, heir.after)];
    return wasJudged(input.judged, incident) ? [ended(input, incident, news)] : [];
  });
  return [...steps, ...ends];
}

/** One lookup instead of a walk over all: a storm has thousands on either side. */
function indexByCharge<T>(
  items: readonly T[],
  incidentOf: (item: T) => Incident,
): ReadonlyMap<string, readonly T[]> {
  const index = new Map<string, T[]>();
  for (const item of items) {
    for (const charge of incidentOf(item).charges) {
      const list = index.get(charge);
      if (list === undefined) index.set(charge, [item]);
      else list.push(item);
    }
  }
  return index;
}

const NEWS: ReadonlySet<StepKind> = new Set<StepKind>(["opened", "worsened", "reopened"]);

function factsOf(input: DiffInput, incident: Incident): ReturnType<typeof verdictOf> {
  return verdictOf(incident, input.failedRefunds?.get(incident.id) ?? []);
}

function opened(input: DiffInput, finding: FoldedFinding): Step {
  const after: Incident = {
    ...statements(finding),
    status: "open",
    firstSeen: input.now,
    lastSeen: input.now,
    count: 1,
    mutedUntil: null,
    closedAt: null,
    closedBy: null,
    verdict: null,
    told: null,
  };
  return { kind: "opened", before: null, after, changes: [], note: null };
}

/** What a finding says anew on every run; the incident takes it over as it is. */
function statements(finding: FoldedFinding): Omit<FoldedFinding, "look"> {
  const { id, code, subject, operationId, severity, basis, rail, scope } = finding;
  const { intents, charges, amountAtRisk, currency, occurredAt } = finding;
  const { summary, advice, evidence } = finding;
  return {
    ...{ id, code, subject, operationId, severity, basis, rail, scope },
    ...{ intents, charges, amountAtRisk, currency, occurredAt, summary, advice, evidence },
  };
}

function seenAgain(input: DiffInput, before: Incident, finding: FoldedFinding): Step {
  const seen: Incident = {
    ...before,
    ...statements(finding),
    occurredAt: finding.occurredAt ?? before.occurredAt,
    lastSeen: input.now,
    count: before.count + 1,
  };
  return before.status === "closed"
    ? seenAfterClosing(input, before, seen)
    : seenWhileOpen(input, before, seen);
}

function seenWhileOpen(input: DiffInput, before: Incident, seen: Incident): Step {
  // A person who muted it judged the facts of that moment; others saw those of the last run.
  const failed = input.failedRefunds?.get(before.id) ?? [];
  const base =
    before.status === "muted" && before.verdict !== null
      ? before.verdict
      : { ...before, failedRefunds: null };
  const changes = whatGotWorse(before.code, base, { ...seen, failedRefunds: failed });
  if (changes.length > 0) {
    const note = before.status === "muted" ? "was muted" : null;
    const after: Incident = { ...seen, status: "open", mutedUntil: null };
    return { kind: "worsened", before, after, changes, note };
  }
  if (before.status === "muted" && statusAt(before, input.now) === "open") {
    const after: Incident = { ...seen, status: "open", mutedUntil: null };
    return { kind: "unmuted", before, after, changes: [], note: "the mute has run out" };
  }
  const milder = isMilder({ ...before, failedRefunds: null }, { ...seen, failedRefunds: null });
  return { kind: milder ? "eased" : "refreshed", before, after: seen, changes: [], note: null };
}

function seenAfterClosing(input: DiffInput, before: Incident, seen: Incident): Step {
  const changes =
    before.verdict === null ? [] : whatGotWorse(before.code, before.verdict, factsOf(input, seen));
  // A person's word holds for the facts as they were; the same facts again change nothing.
  if (before.closedBy === "person" && changes.length === 0) {
    return { kind: "refreshed", before, after: seen, changes: [], note: null };
  }
  // A mute outlives a closing by facts, as long as the facts come back no worse.
  const muted = changes.length === 0 && before.mutedUntil !== null && before.mutedUntil > input.now;
  const after: Incident = {
    ...seen,
    status: muted ? "muted" : "open",
    mutedUntil: muted ? before.mutedUntil : null,
    closedAt: null,
    closedBy: null,
    verdict: muted ? before.verdict : null,
  };
  const note = before.closedBy === "person" ? "a person had closed it" : null;
  return { kind: "reopened", before, after, changes, note };
}

/**
 * Does `finding` tell the trouble of `incident` under another subject? A row that came late, or one
 * more charge, gives an operation another id; what people said about it must not be lost by that.
 */
function goesOn(incident: Incident, finding: FoldedFinding): boolean {
  if (incident.code !== finding.code || incident.scope !== finding.scope) return false;
  if (incident.operationId === null || incident.operationId === finding.operationId) return false;
  if (incident.status === "closed" && incident.closedBy !== "person") return false;
  if (incident.charges.length === 0) return false;
  return incident.charges.every((charge) => finding.charges.includes(charge));
}

function inherit(input: DiffInput, older: Incident, finding: FoldedFinding): Step {
  const { id, subject, operationId } = finding;
  const step = seenAgain(input, { ...older, id, subject, operationId }, finding);
  const note = `goes on from ${older.id}`;
  const kind = step.kind === "refreshed" || step.kind === "eased" ? "continued" : step.kind;
  return { ...step, kind, before: null, note };
}

function absorbed(input: DiffInput, before: Incident, heir: Incident): Step {
  const note = `goes on as ${heir.id} (${heir.code})`;
  const after: Incident = { ...closedAfter(input, before), told: null };
  return { kind: "absorbed", before, after, changes: [], note };
}

function wasJudged(judged: Judged, incident: Incident): boolean {
  if (judged.codes !== "all" && !judged.codes.has(incident.code)) return false;
  if (incident.operationId === null) {
    return judged.subjects === "all" || judged.subjects.has(incident.subject);
  }
  if (judged.operations !== "all" && !judged.operations.has(incident.operationId)) return false;
  // Without a scope the trouble spans rails: every source must see.
  if (incident.scope === null) return judged.blindScopes.size === 0;
  return !judged.blindScopes.has(incident.scope);
}

function ended(
  input: DiffInput,
  before: Incident,
  news: ReadonlyMap<string, readonly Step[]>,
): Step {
  const sharing = news.get(before.charges[0] ?? "") ?? [];
  const heir = sharing.find((step) => takesOver(step.after, before));
  if (heir !== undefined) return absorbed(input, before, heir.after);
  const correction = input.corrections?.get(before.id);
  const wrong = correction !== undefined && before.told !== null;
  return {
    kind: wrong ? "corrected" : "closed",
    before,
    after: closedAfter(input, before),
    changes: [],
    note: correction === undefined ? null : correctionWords(correction),
  };
}

/** An orphan that turned out to be half of a double charge is told there, not twice. */
function takesOver(other: Incident, before: Incident): boolean {
  if (before.code !== "orphan_charge" || other.code === before.code) return false;
  // A cap names its newest charge and says nothing about the charge itself.
  if (other.code === "spend_cap_exceeded") return false;
  // A double over two rails has no scope of its own.
  if (other.scope !== null && other.scope !== before.scope) return false;
  return before.charges.every((charge) => other.charges.includes(charge));
}

function closedAfter(input: DiffInput, before: Incident): Incident {
  return {
    ...before,
    status: "closed",
    closedAt: input.now,
    closedBy: "facts",
    verdict:
      before.status === "muted" && before.verdict !== null
        ? before.verdict
        : factsOf(input, before),
  };
}

// Words name at most this many ids; the lists of the incident hold all of them.
const NAMED_MAX = 5;

function correctionWords(correction: Correction): string {
  switch (correction.kind) {
    case "recorded":
      return `${correction.charge} turned out to be recorded as intent ${correction.intent}`;
    case "vanished":
      return `${correction.charge} is no longer a payment: its provider took it back`;
    case "existed":
      return `${correction.charge} turned out to exist: its provider told of it late`;
    case "separate": {
      const { charges } = correction;
      const more =
        charges.length > NAMED_MAX ? ` and ${String(charges.length - NAMED_MAX)} more` : "";
      return `${charges.slice(0, NAMED_MAX).join(", ")}${more} turned out to be different purchases`;
    }
  }
}
