/** Reads the situation of an ambiguous row on chain from the mirror; no endpoint is asked here. */
import { canonicalAddress, parseChainCharge } from "../../core/chain.ts";
import { interval } from "../../core/interval.ts";
import type { RuleSettings } from "../../core/settings.ts";
import { readNamedSql, runNamed } from "../../store/named-sql.ts";
import type { Db } from "../../store/pool.ts";
import { ownCharge, readOwnCharges } from "../own-charges.ts";
import type { ChargeRecord } from "../own-charges.ts";
import { NAMED_MAX, readOpenIntent, readRivals, readSiblings } from "../read-situation.ts";
import type { OwnCharge } from "../situation.ts";
import type { ChainIntent, ChainSituation, FinalBlock, SharedNonce } from "./situation.ts";

const sql = {
  intent: readNamedSql("resolve/intent.sql"),
  sharedNonce: readNamedSql("resolve/shared_nonce.sql"),
  alike: readNamedSql("resolve/alike_transfers.sql"),
};

/** The settings that bound likeness. */
export type LikenessRules = Pick<RuleSettings, "clockSlackMs" | "attemptWindowMs">;

/** The row as the mirror has it; `null`: it is gone. */
export async function readChainIntent(
  db: Db,
  input: { readonly intentId: string; readonly touchKnown: boolean },
): Promise<ChainIntent | null> {
  const intent = await readOpenIntent(db, input);
  if (intent === null) return null;
  const [row] = await runNamed<{
    payer: string | null;
    nonce: string | null;
    valid_before: Date | null;
  }>(db, sql.intent, { intent: input.intentId });
  if (row === undefined) return null;
  return {
    ...intent,
    payer: row.payer === null ? null : canonicalAddress(row.payer),
    nonce: row.nonce,
    validBefore: row.valid_before,
    txHash: intent.chargeId === null ? null : (parseChainCharge(intent.chargeId)?.txHash ?? null),
  };
}

/** Everything of the mirror that the decision may rest on; `null`: there is no such row. */
export async function readChainSituation(
  db: Db,
  input: {
    readonly intentId: string;
    readonly touchKnown: boolean;
    readonly rules: LikenessRules;
    readonly asked: Pick<ChainSituation, "nonce" | "transaction">;
  },
): Promise<ChainSituation | null> {
  const intent = await readChainIntent(db, input);
  if (intent === null) return null;
  const { intentId, operationId, scope } = intent;
  const charges = await readOwnCharges(db, intentId);
  const operation = operationId === null ? null : { operation: operationId, limit: NAMED_MAX };
  return {
    intent,
    charges: charges.filter((charge) => charge.status !== "failed"),
    siblings: operation === null ? [] : await readSiblings(db, intentId, operation),
    rivals: await readRivals(db, intentId),
    sharedNonce: await readSharedNonce(db, intentId),
    alike: await readAlike(db, intentId, input.rules),
    ...(await readRange(db, scope)),
    ...input.asked,
  };
}

async function readSharedNonce(db: Db, intent: string): Promise<SharedNonce[]> {
  const rows = await runNamed<{ intent_id: string; state: string; charge_id: string | null }>(
    db,
    sql.sharedNonce,
    { intent, limit: NAMED_MAX },
  );
  return rows.map((row) => ({
    intentId: row.intent_id,
    state: row.state,
    chargeId: row.charge_id,
  }));
}

async function readAlike(db: Db, intent: string, rules: LikenessRules): Promise<OwnCharge[]> {
  const rows = await runNamed<ChargeRecord>(db, sql.alike, {
    intent,
    slack: interval(rules.clockSlackMs),
    window: interval(rules.attemptWindowMs),
    limit: NAMED_MAX,
  });
  return rows.map(ownCharge);
}

async function readRange(
  db: Db,
  scope: string,
): Promise<{ readonly readTo: FinalBlock | null; readonly readFrom: Date | null }> {
  const found = await db.query<{
    number: bigint | null;
    hash: string | null;
    time: Date | null;
    read_from: Date | null;
  }>(
    `select e.final_block as number, e.final_hash as hash, e.final_time as time,
            (select min(lower(r)) from tallyd.source s, unnest(s.covered) as r
              where s.scope = e.scope and s.source = 'evm.logs') as read_from
       from tallyd.evm_chain e
      where e.scope = $1`,
    [scope],
  );
  const row = found.rows[0];
  if (row === undefined || row.number === null || row.hash === null || row.time === null) {
    return { readTo: null, readFrom: null };
  }
  const { number, hash, time } = row;
  return { readTo: { number, hash, time }, readFrom: row.read_from };
}
