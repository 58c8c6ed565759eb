/** What tables say about incidents beyond their own rows: told when, and what turned out. */
import type { PoolClient } from "pg";

import type { Correction } from "../core/incident.ts";

/** How often an incident was told lately. */
export interface ToldCount {
  readonly incidentId: string;
  /** Opened, closed, reopened or corrected. */
  readonly flips: number;
  readonly worsenings: number;
}

/** How often each of the incidents was told since `since`; one that was not is left out. */
export async function toldSince(
  tx: PoolClient,
  ids: readonly string[],
  since: Date,
): Promise<readonly ToldCount[]> {
  const found = await tx.query<{ id: string; flips: number; worsenings: number }>(
    `select e.incident_id as id,
            count(*) filter (where e.step <> 'worsened')::integer as flips,
            count(*) filter (where e.step = 'worsened')::integer as worsenings
       from tallyd.incident_entry e
      where e.incident_id = any ($1::text[])
        and e.at > $2
        and e.step in ('opened', 'closed', 'reopened', 'corrected', 'worsened')
        and e.evidence ? 'told'
      group by e.incident_id`,
    [ids, since],
  );
  return found.rows.map(({ id, flips, worsenings }) => ({ incidentId: id, flips, worsenings }));
}

/** Since when each of the incidents is open: its last opening or return. */
export async function openSince(
  tx: PoolClient,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Date>> {
  const found = await tx.query<{ id: string; at: Date }>(
    `select distinct on (e.incident_id) e.incident_id as id, e.at
       from tallyd.incident_entry e
      where e.incident_id = any ($1::text[])
        and e.step in ('opened', 'reopened')
        -- It was open while it was acknowledged.
        and e.evidence ->> 'from' is distinct from 'acknowledged'
      order by e.incident_id, e.entry_id desc`,
    [ids],
  );
  return new Map(found.rows.map(({ id, at }) => [id, at]));
}

/** Subjects of the floods that are open: sql/detectors/config_error_flood. */
export async function openFloods(tx: PoolClient): Promise<ReadonlySet<string>> {
  const found = await tx.query<{ subject: string }>(
    `select i.subject
       from tallyd.incident i
      where i.code = 'config_error'
        and i.basis = 'flood'
        and i.status <> 'closed'`,
  );
  return new Set(found.rows.map((row) => row.subject));
}

// An incident over several rails has no scope of its own: its charges are in any that is read.
const SCOPES = `case
  when i.scope is null then (select array_agg(distinct s.scope) from tallyd.source s)
  else array[i.scope]
end`;

/**
 * What turned out about incidents whose finding is gone, where they were wrong and not merely
 * settled: a row or a charge that came late, a charge that is no payment any more (failed late, or
 * its block was replaced), charges that belong to different purchases.
 */
export async function correctionsOf(
  tx: PoolClient,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Correction>> {
  if (ids.length === 0) return new Map();
  const apart = await tx.query<{ id: string; charges: string[] }>(SEPARATED, [ids]);
  const byCharge = await tx.query<CorrectionRow>(BY_CHARGE, [ids]);
  return new Map([
    ...apart.rows.map(({ id, charges }) => [id, { kind: "separate", charges }] as const),
    ...byCharge.rows.map((row) => [row.id, correctionFrom(row)] as const),
  ]);
}

interface CorrectionRow {
  readonly id: string;
  readonly kind: "recorded" | "vanished" | "existed";
  readonly charge: string;
  readonly intent: string | null;
}

const BY_CHARGE = `
select distinct on (i.id) i.id, k.kind, n.charge, m.intent_id as intent
  from tallyd.incident i
 cross join lateral unnest(i.charges) as n (charge)
  left join tallyd.charge c
    on c.charge_id = n.charge
   and c.scope = any (${SCOPES})
  left join tallyd.charge_match m
    on m.scope = c.scope
   and m.charge_id = c.charge_id
 cross join lateral (
         select case
                  when i.code = 'orphan_charge' and m.intent_id is not null then 'recorded'
                  -- The row names what the provider now has.
                  when i.basis = 'never_existed'
                       and (c.charge_id is not null
                            or exists (select
                                         from tallyd.charge o
                                        where o.scope = i.scope
                                          and o.payment_intent = n.charge)
                            or exists (select
                                         from tallyd.stripe_payment_intent p
                                        where p.scope = i.scope
                                          and p.id = n.charge))
                       and exists (select
                                     from tallyd.intent r
                                    where r.intent_id = any (i.intents)
                                      and r.charge_id = n.charge
                                      and r.vanished_at is null)
                  then 'existed'
                  -- These rest on a payment that had succeeded.
                  when (i.code in ('orphan_charge', 'double_charge', 'amount_mismatch')
                        or i.basis = 'failed_but_paid')
                       and (c.status = 'failed'
                            -- A log that left the mirror with its block.
                            or c.charge_id is null and n.charge like 'eip155:%')
                  then 'vanished'
                end as kind
       ) k
 where i.id = any ($1::text[])
   and k.kind is not null
 order by i.id, k.kind, m.intent_id nulls last, n.charge`;

// No money went back, and still nothing is doubled any more: rows that came late made different
// purchases of it.
const SEPARATED = `
select i.id, i.charges
  from tallyd.incident i
 cross join lateral (
         select count(*) as paid,
                count(distinct f.operation_id) as operations,
                count(coalesce(f.reference, r.reference, r.payment_id)) as named,
                count(distinct coalesce(f.reference, r.reference, r.payment_id)) as names
           from unnest(i.charges) as n (charge)
           join tallyd.charge_fact f
             on f.charge_id = n.charge
            and f.scope = any (${SCOPES})
           left join tallyd.intent r on r.intent_id = f.intent_id
          where f.succeeded
            and f.net = f.amount_captured
       ) p
 where i.id = any ($1::text[])
   and i.code = 'double_charge'
   and p.paid = cardinality(i.charges)
   and case
         when i.basis = 'similar' then p.named = p.paid and p.names > 1
         else p.operations > 1
       end`;

function correctionFrom({ kind, charge, intent }: CorrectionRow): Correction {
  if (kind === "recorded" && intent !== null) return { kind, charge, intent };
  return { kind: kind === "existed" ? "existed" : "vanished", charge };
}
