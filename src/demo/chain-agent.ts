/** What an agent does that pays over x402: it signs, somebody submits, a row says what it knows. */
import type { Pool } from "pg";

import type { Authorization, Sent } from "../sandbox/chain/local-types.ts";
import type { Purchase } from "./agent.ts";
import type { ChainStage } from "./chain-stage.ts";

export interface ChainDeps {
  readonly pool: Pool;
  readonly stage: ChainStage;
}

/** Signs for a purchase. */
export function signFor(
  { stage }: ChainDeps,
  purchase: Purchase,
  validForSeconds = 300,
): Promise<Authorization> {
  const { chain, token, payer, payee } = stage;
  return chain.sign(token, payer, payee.address, BigInt(purchase.amount), { validForSeconds });
}

/** Submits it, as a facilitator does. */
export function submit({ stage }: ChainDeps, authorization: Authorization): Promise<Sent> {
  return stage.chain.submit(stage.token, authorization);
}

/** Writes the row: what was signed, and what the agent believes has become of it. */
export async function writeRow(
  { pool, stage }: ChainDeps,
  input: {
    readonly purchase: Purchase;
    readonly authorization: Authorization;
    readonly state: string;
    readonly hash?: string;
    readonly response?: unknown;
  },
): Promise<void> {
  const { purchase, authorization, state, hash, response } = input;
  const { nonce, validBefore, from, to } = authorization;
  await pool.query(
    `insert into payment_intents (intent_id, account_id, amount, currency, idempotency_key, state,
       charge_id, response_json, reference, rail, network, asset, payer, payee, nonce, valid_before)
     values ($1, $2, $3, 'usdc', $4, $5, $6, $7, $8, 'evm', $9, $10, $11, $12, $13,
       to_timestamp($14))`,
    [
      purchase.intentId,
      purchase.account,
      purchase.amount,
      purchase.key,
      state,
      hash ?? null,
      response === undefined ? null : JSON.stringify(response),
      purchase.reference,
      stage.scope,
      stage.token.address,
      from,
      to,
      nonce,
      Number(validBefore),
    ],
  );
}
