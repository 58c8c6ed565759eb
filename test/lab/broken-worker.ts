/**
 * A worker of the laboratory whose ledger stands on broken ground, as `BROKEN` says:
 * - `keyless`: its client loses the idempotency key
 * - `careless`: its table has no compare-and-set, and a row in flight reads as one that is free
 * - `blind`: its client finds nothing when it looks a payment up
 */
import type { Db, StripeClient } from "../../src/ledger/ledger.ts";
import { openDesk, serveDesk } from "../../src/lab/desk.ts";

const broken = new Set((process.env["BROKEN"] ?? "").split(","));

serveDesk((setup) => {
  const desk = openDesk(setup);
  const { paymentIntents } = desk.stripe;
  if (broken.has("keyless")) loseKeys(paymentIntents);
  if (broken.has("blind")) paymentIntents.list = nothing;
  return broken.has("careless") ? { ...desk, db: careless(desk.db) } : desk;
});

function loseKeys(paymentIntents: StripeClient["paymentIntents"]): void {
  const create = paymentIntents.create.bind(paymentIntents);
  paymentIntents.create = (params, options) =>
    create(params, { ...options, idempotencyKey: undefined });
}

async function* nothing(): ReturnType<StripeClient["paymentIntents"]["list"]> {
  // On purpose empty: a list without anything in it.
}

const COMPARE = "p.state = $7 and extract(epoch from p.updated_at) = $8::numeric";

function careless(db: Db): Db {
  return {
    query: async (text, values) => {
      const all = text.replace(COMPARE, "($7::text, $8::numeric) is not null");
      if (text.startsWith("update") && all === text && !text.includes("any ($7")) {
        throw new Error(`the ledger compares otherwise by now: ${text}`);
      }
      const { rows } = await db.query(all, values);
      const isFree = (row: (typeof rows)[number]) => row["state"] === "in_flight";
      return { rows: rows.map((row) => (isFree(row) ? { ...row, state: "key_minted" } : row)) };
    },
  };
}
