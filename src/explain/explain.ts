/** Everything known about one purchase, from whichever of its ids a person has at hand. */
import { canonicalChainCharge, isChainScope, parseChainCharge } from "../core/chain.ts";
import { contractOf } from "../core/contract.ts";
import type { Contract } from "../core/contract.ts";
import type { Incident } from "../core/incident.ts";
import type { RuleSettings } from "../core/settings.ts";
import { toBigint } from "../store/pool.ts";
import type { Db } from "../store/pool.ts";
import { resolutionsOf } from "../store/resolutions.ts";
import type { StoredResolution } from "../store/resolutions.ts";
import { listSources } from "../store/sources.ts";
import type { Explained, ExplainedCoverage } from "./explained.ts";
import {
  presentCharge,
  presentCoverage,
  presentEvent,
  presentIntent,
  presentPayment,
  presentResolution,
  presentReturn,
} from "./present.ts";
import {
  findOperations,
  readChainEvents,
  readCharges,
  readEvents,
  readIncidents,
  readIntents,
  readMoneyBack,
  readPayments,
} from "./read-operation.ts";
import type {
  ChargeRow,
  EventRow,
  IntentRecord,
  ObjectName,
  PaymentRow,
} from "./read-operation.ts";

/** What explaining needs besides the id. */
export interface ExplainDeps<Shown> {
  readonly db: Db;
  readonly now: Date;
  readonly rules: Pick<RuleSettings, "retryHorizonMs">;
  /** Scopes that are watched; those that the database knows are found without. */
  readonly scopes: readonly string[];
  /** The outside shape of an incident. */
  readonly presentIncident: (incident: Incident, now: Date) => Shown;
}

// The newest decisions; the record of one row is short, since repeats are not stored.
const RESOLUTIONS_MAX = 200;
// The look-ups of a handful of ids: each costs one pass over the indexes.
const NEAREST_MAX = 3;

/**
 * Explains a purchase by the id of its row, a charge, a payment intent, a refund, a dispute, an
 * event, an incident, its idempotency key, reference or operation. `null`: nothing of it is known.
 */
export async function explain<Shown>(
  deps: ExplainDeps<Shown>,
  id: string,
): Promise<Explained<Shown> | null> {
  const { db, now } = deps;
  const operations = await operationsOf(deps, id);
  if (operations.length === 0) return null;
  const intents = await readIntents(db, operations);
  const charges = await readCharges(db, operations);
  const payments = await readPayments(db, operations);
  const intent = subjectOf(id, intents, charges);
  const back = await readMoneyBack(db, objectsOf(charges, payments));
  const objects = [...objectsOf(charges, payments), ...back];
  const intentIds = intents.map((row) => row.intent_id);
  const resolutions = await resolutionsOf(db, { intentIds, limit: RESOLUTIONS_MAX });
  const incidents = await readIncidents(db, {
    operations,
    intents: intentIds,
    charges: charges.map((row) => row.charge_id),
  });
  return {
    query: id,
    operations,
    intent: intent === null ? null : presentIntent(intent),
    intents: intents.map(presentIntent),
    charges: charges.map(presentCharge),
    paymentIntents: payments.map(presentPayment),
    refunds: back.filter((row) => row.kind === "refund").map(presentReturn),
    disputes: back.filter((row) => row.kind === "dispute").map(presentReturn),
    events: [...(await readEvents(db, objects)), ...(await chainEvents(db, intents, charges))].map(
      presentEvent,
    ),
    resolutions: resolutions.toReversed().map(presentResolution),
    incidents: incidents.map((incident) => deps.presentIncident(incident, now)),
    coverage: await coverageOf(db, objects, intent),
    contract: intent === null ? null : contractFor(deps, intent, resolutions),
  };
}

/** By the id as it was typed, else by its other spellings on chain. */
async function operationsOf(
  deps: Pick<ExplainDeps<unknown>, "db" | "scopes">,
  id: string,
): Promise<string[]> {
  const charge = parseChainCharge(id);
  const others =
    charge === null
      ? []
      : deps.scopes
          .filter(isChainScope)
          .flatMap((scope) => canonicalChainCharge(id, charge.scope ?? scope) ?? []);
  for (const spelling of new Set([id, ...others])) {
    const operations = await findOperations(deps.db, spelling, deps.scopes);
    if (operations.length > 0) return operations;
  }
  return [];
}

function chainEvents(
  db: Db,
  intents: readonly IntentRecord[],
  charges: readonly ChargeRow[],
): Promise<EventRow[]> {
  const onChain = charges.filter((row) => row.rail === "evm");
  const rows = intents.filter((row) => row.rail === "evm").map((row) => row.intent_id);
  if (onChain.length + rows.length === 0) return Promise.resolve([]);
  return readChainEvents(db, { charges: objectsOf(onChain, []), intents: rows });
}

/** The row that the id means: itself, the owner of the charge, else the oldest of the purchase. */
function subjectOf(
  id: string,
  intents: readonly IntentRecord[],
  charges: readonly ChargeRow[],
): IntentRecord | null {
  const named = (known: string | null | undefined): IntentRecord | undefined =>
    intents.find((row) => row.intent_id === known);
  const owner = charges.find(
    (row) => (row.charge_id === id || row.payment_intent === id) && row.intent_id !== null,
  );
  const keyed = intents.find((row) => row.idempotency_key === id || row.charge_id === id);
  return named(id) ?? named(owner?.intent_id) ?? keyed ?? intents[0] ?? null;
}

function objectsOf(charges: readonly ChargeRow[], payments: readonly PaymentRow[]): ObjectName[] {
  return [
    ...charges.map((row) => ({ scope: row.scope, id: row.charge_id })),
    ...payments.map((row) => ({ scope: row.scope, id: row.id })),
  ];
}

async function coverageOf(
  db: Db,
  objects: readonly ObjectName[],
  intent: IntentRecord | null,
): Promise<ExplainedCoverage[]> {
  const scopes = new Set(objects.map((one) => one.scope));
  if (intent !== null) scopes.add(intent.scope);
  const sources = await listSources(db);
  return sources
    .filter((source) => source.source === "local" || scopes.has(source.scope))
    .map((source) => presentCoverage(source, intent));
}

function contractFor(
  deps: Pick<ExplainDeps<unknown>, "rules" | "now">,
  intent: IntentRecord,
  resolutions: readonly StoredResolution[],
): Contract {
  return contractOf({
    intent: {
      intentId: intent.intent_id,
      accountId: intent.account_id,
      scope: intent.scope,
      operationId: intent.operation_id,
      amount: toBigint(intent.amount),
      currency: intent.currency,
      payee: intent.payee,
      reference: intent.reference,
      fingerprint: intent.fingerprint,
      idempotencyKey: intent.idempotency_key,
      state: intent.state,
      createdAt: intent.created_at,
      updatedAt: intent.updated_at,
    },
    rules: deps.rules,
    now: deps.now,
    open: openIn(intent, resolutions),
  });
}

/** What the newest decision about the row as it stands left open. */
function openIn(intent: IntentRecord, resolutions: readonly StoredResolution[]): string[] {
  const last = resolutions.find((one) => one.intentId === intent.intent_id);
  if (last === undefined) {
    return ["recorded", "failed_terminal"].includes(intent.state)
      ? []
      : ["nobody has looked at it yet"];
  }
  const stands = last.outcome === "applied" ? last.toState : last.fromState;
  if (stands !== intent.state) return [];
  const answer = last.contract["uncertainty"];
  if (typeof answer !== "object" || answer === null || !("open" in answer)) return [];
  const { open } = answer;
  return Array.isArray(open) ? open.filter((item) => typeof item === "string") : [];
}

/** Ids of rows and charges that begin like an unknown one, for "did you mean". */
export async function nearestIds(db: Db, id: string): Promise<string[]> {
  // Half of the id: enough to be the same kind of id, little enough to forgive a wrong ending.
  const start = id.slice(0, Math.ceil(id.length / 2));
  const found = await db.query<{ id: string }>(
    `(select i.intent_id as id
        from tallyd.intent i
       where i.intent_id >= $1
         and starts_with(i.intent_id, $1)
       order by i.intent_id
       limit $2)
     union
     (select m.charge_id
        from tallyd.charge_match m
       where starts_with(m.charge_id, $1)
       order by m.charge_id
       limit $2)
      order by id
      limit $2`,
    [start, NEAREST_MAX],
  );
  return found.rows.map((row) => row.id);
}
