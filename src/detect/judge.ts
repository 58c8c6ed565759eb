import type { Pool } from "pg";

import { addMs } from "../core/clock.ts";
import type { Finding, Look } from "../core/finding.ts";
import type { Log } from "../core/log.ts";
import { incidentId } from "../core/incident.ts";
import { addDue, readDue, removeDue, widenByIncidents } from "../store/due.ts";
import { openIncidentIds } from "../store/incidents.ts";
import { countSpend, judgedCaps } from "../store/spend.ts";
import { detect } from "./detect.ts";
import type { Judged } from "./diff.ts";
import type { Detector } from "./load.ts";
import { detectorParameters } from "./parameters.ts";
import type { DetectorContext } from "./parameters.ts";
import { suppressCovered } from "./suppress.ts";

/** What a direct look at the system of record answered. */
export type LookAnswer = "absent" | "found" | "unreadable";

export interface JudgeDeps {
  readonly pool: Pool;
  readonly detectors: readonly Detector[];
  readonly context: DetectorContext;
  /** The database's clock, so that ages never mix two clocks (case B45). */
  readonly now: () => Promise<Date>;
  /** Looks directly; whatever it finds is stored, so that its operation is judged again. */
  readonly look: (look: Look) => Promise<LookAnswer>;
  /** Scopes with a blind source: nothing there is closed. */
  readonly blindScopes: () => Promise<ReadonlySet<string>>;
  /** Turns findings into incidents and messages in one transaction. */
  readonly record: (input: {
    readonly findings: readonly Finding[];
    readonly judged: Judged;
    readonly now: Date;
  }) => Promise<unknown>;
  readonly log: Log;
}

export interface JudgeResult {
  readonly operations: number;
  readonly findings: number;
  /** Absence verdicts that could not be spoken because the look failed. */
  readonly unreadable: number;
  /** True when more operations are due already. */
  readonly more: boolean;
}

// One batch is judged in well under a second, and its incidents fit into one transaction.
const OPERATIONS_MAX = 500;
// Looks one by one cost provider reads, or statements at the team's table; what is left over stays
// due and is looked up in a later batch.
const LOOKS_MAX = 100;
// Charges without rows that are looked up by one statement, which mostly finds none of them.
const LOOKED_TOGETHER_MAX = 100;

/** Judges the operations whose time has come. The caller holds the judge lock. */
export async function judgeDue(deps: JudgeDeps): Promise<JudgeResult> {
  const asOf = await deps.now();
  const due = await readDue(deps.pool, { asOf, limit: OPERATIONS_MAX });
  if (due.length === 0) return { operations: 0, findings: 0, unreadable: 0, more: false };
  const operations = [...new Set(due.map((row) => row.operationId))];
  const judged = await judgeOperations(deps, { operations, asOf });
  await removeDue(deps.pool, due);
  return { ...judged, more: operations.length === OPERATIONS_MAX };
}

/**
 * Runs every operation detector over a set of operations and records what they find. Operations
 * that
 * share an open incident with them are judged too, since a group can only close as a whole.
 */
export async function judgeOperations(
  deps: JudgeDeps,
  input: { readonly operations: readonly string[]; readonly asOf: Date },
): Promise<Omit<JudgeResult, "more">> {
  const operations = await widenByIncidents(deps.pool, input.operations);
  const detectors = deps.detectors.filter((detector) => detector.about === "operations");
  const parameters = detectorParameters(deps.context, { operations, asOf: input.asOf });
  if (deps.context.settings.rules.spendCaps.length > 0) await countSpend(deps.pool, operations);
  const { findings, codes } = await detect(deps.pool, detectors, parameters);
  const spoken = await lookBeforeSpeaking(deps, suppressCovered(findings));
  await deps.record({
    findings: spoken.findings,
    judged: {
      operations: new Set(operations),
      subjects: await judgedCaps(deps.pool, parameters),
      codes,
      blindScopes: await deps.blindScopes(),
    },
    now: input.asOf,
  });
  return {
    operations: operations.length,
    findings: spoken.findings.length,
    unreadable: spoken.unreadable,
  };
}

/** Runs the detectors that speak about the sources themselves: blindness and configuration. */
export async function judgeSources(deps: JudgeDeps): Promise<number> {
  const asOf = await deps.now();
  const detectors = deps.detectors.filter((detector) => detector.about === "sources");
  const parameters = detectorParameters(deps.context, { operations: [], asOf });
  const { findings, codes } = await detect(deps.pool, detectors, parameters);
  await deps.record({
    findings,
    judged: { operations: new Set(), subjects: "all", codes, blindScopes: new Set() },
    now: asOf,
  });
  return findings.length;
}

/**
 * Absence verdicts are spoken only after one direct look (invariant 2). An incident that is
 * open already was looked up when it was opened; facts close it.
 */
async function lookBeforeSpeaking(
  deps: JudgeDeps,
  findings: readonly Finding[],
): Promise<{ findings: Finding[]; unreadable: number }> {
  const ids = findings.map((finding) => incidentId(finding.code, finding.subject));
  const open = await openIncidentIds(deps.pool, ids);
  const asked = findings.flatMap(({ look }, index) =>
    look === null || open.has(ids[index] ?? "") ? [] : [look],
  );
  const answers = await lookAll(deps, asked);
  const spoken: Finding[] = [];
  let unreadable = 0;
  for (const finding of findings) {
    const answer = finding.look === null ? undefined : answers.get(finding.look);
    if (answer === undefined || answer === "absent") spoken.push(finding);
    if (answer === "unreadable") {
      unreadable += 1;
      await postpone(deps, finding);
    }
  }
  return { findings: spoken, unreadable };
}

async function lookAll(
  deps: JudgeDeps,
  looks: readonly Look[],
): Promise<ReadonlyMap<Look, LookAnswer>> {
  const answers = new Map<Look, LookAnswer>();
  const single: Look[] = looks.filter((look) => look.source !== "local");
  const local = looks.filter((look) => look.source === "local");
  for (let from = 0; from < local.length; from += LOOKED_TOGETHER_MAX) {
    const part = local.slice(from, from + LOOKED_TOGETHER_MAX);
    const answer = part.length === 1 ? "found" : await deps.look(together(part));
    // Found is one of them: which, only looks at each can tell.
    if (answer === "found") single.push(...part);
    else for (const look of part) answers.set(look, answer);
  }
  for (const [index, look] of single.entries()) {
    answers.set(look, index < LOOKS_MAX ? await deps.look(look) : "unreadable");
  }
  return answers;
}

type LocalLook = Extract<Look, { source: "local" }>;

function together(looks: readonly LocalLook[]): LocalLook {
  return {
    source: "local",
    scope: looks[0]?.scope ?? "",
    chargeIds: looks.flatMap((look) => look.chargeIds),
    keys: looks.flatMap((look) => look.keys),
    intentIds: looks.flatMap((look) => look.intentIds),
    references: looks.flatMap((look) => look.references),
    nonces: looks.flatMap((look) => look.nonces),
  };
}

// Long enough for a provider's limit to pass, short enough that a real orphan is told in time.
const POSTPONE_MS = 60_000;

async function postpone(deps: JudgeDeps, finding: Finding): Promise<void> {
  deps.log.warn("an absence verdict waits: the direct look failed", {
    code: finding.code,
    subject: finding.subject,
  });
  if (finding.operationId === null) return;
  const now = await deps.now();
  await addDue(deps.pool, { operationIds: [finding.operationId], at: addMs(now, POSTPONE_MS) });
}

// Operations per chunk of the audit: one snapshot each, so a long audit never holds an old one, and
// as many as are judged at once elsewhere, since plans are made for that.
const AUDIT_CHUNK = OPERATIONS_MAX;

/**
 * The full audit: the same detectors over all operations, in bounded chunks by operation id.
 * `onProgress` is told the number judged so far; `signal` stops between two chunks.
 */
export async function auditAll(
  deps: JudgeDeps,
  options: {
    readonly onProgress?: (progress: { readonly done: number; readonly total: number }) => void;
    readonly signal?: AbortSignal;
    /** Wraps each chunk, e.g. in the judge lock: nothing else may judge meanwhile. */
    readonly around?: (work: () => Promise<void>) => Promise<void>;
  } = {},
): Promise<Omit<JudgeResult, "more">> {
  const total = await countOperations(deps.pool);
  const sum = { operations: 0, findings: 0, unreadable: 0 };
  const around = options.around ?? ((work: () => Promise<void>) => work());
  let after = "";
  let done = 0;
  for (;;) {
    if (options.signal?.aborted === true) return sum;
    const operations = await nextOperations(deps.pool, after);
    const last = operations.at(-1);
    if (last === undefined) return sum;
    await around(async () => {
      const judged = await judgeOperations(deps, { operations, asOf: await deps.now() });
      sum.operations += operations.length;
      sum.findings += judged.findings;
      sum.unreadable += judged.unreadable;
    });
    done += operations.length;
    options.onProgress?.({ done, total });
    after = last;
  }
}

async function nextOperations(pool: Pool, after: string): Promise<string[]> {
  const result = await pool.query<{ operation_id: string }>(
    `select operation_id
       from (
              (select distinct operation_id
                 from tallyd.intent_match
                where operation_id > $1
                order by operation_id
                limit $2)
               union
              (select distinct operation_id
                 from tallyd.charge_match
                where operation_id > $1
                order by operation_id
                limit $2)
            ) o
      order by operation_id
      limit $2`,
    [after, AUDIT_CHUNK],
  );
  return result.rows.map((row) => row.operation_id);
}

async function countOperations(pool: Pool): Promise<number> {
  const result = await pool.query<{ n: bigint }>(
    `select count(*) as n
       from (select operation_id from tallyd.intent_match
              union
             select operation_id from tallyd.charge_match) o`,
  );
  return Number(result.rows[0]?.n ?? 0n);
}
