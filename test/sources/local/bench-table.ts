import type { Pool } from "pg";

import { loadSettings } from "../../../src/config/load-settings.ts";
import type { Settings } from "../../../src/core/settings.ts";
import { inspectLocal } from "../../../src/sources/local/inspect.ts";
import type { PassDeps } from "../../../src/sources/local/pass.ts";
import { placeSettings } from "../../../src/sources/local/place.ts";

/** The documented table, exactly as README.md prints it. */
export const SEED_DDL = `
CREATE TABLE payment_intents (
    intent_id        TEXT PRIMARY KEY,
    account_id       TEXT NOT NULL,
    amount           INTEGER NOT NULL,
    currency         CHAR(3) NOT NULL,
    idempotency_key  TEXT NOT NULL UNIQUE,
    state            TEXT NOT NULL DEFAULT 'key_minted',
    charge_id        TEXT,
    response_json    JSONB,
    created_at       TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at       TIMESTAMPTZ NOT NULL DEFAULT now()
);`;

/** The mapped table of the outside contract. */
export const SHOP_DDL = `
create schema if not exists shop;
create table shop.payments (
  order_no bigint primary key, cents integer not null, cur varchar(3) not null, idem uuid,
  status text not null, stripe_id varchar(80), response text, meta jsonb,
  created timestamp not null, modified timestamp
);`;

/** The mapping of the outside contract for {@link SHOP_DDL}. */
export const SHOP_FILE = {
  intents: {
    table: "shop.payments",
    columns: {
      intentId: "order_no",
      accountId: "'shop'",
      amount: "cents",
      currency: "lower(cur)",
      idempotencyKey: "idem",
      state: "status",
      chargeId: "stripe_id",
      response: "response",
      createdAt: "created",
      updatedAt: "modified",
      reference: "meta->>'order'",
    },
    states: { PENDING: "in_flight", PAID: "recorded", UNKNOWN: "reconciling" },
    write: { state: "status", chargeId: "stripe_id", response: "response" },
    timeZone: "Europe/Berlin",
  },
};

/** Settings as a user would give them. */
export function settingsOf(input: {
  readonly env?: Readonly<Record<string, string>>;
  readonly file?: unknown;
}): Settings {
  const env = input.file === undefined ? input.env : { TALLYD_CONFIG: "t.json", ...input.env };
  return loadSettings({ env: env ?? {}, readFile: () => JSON.stringify(input.file) });
}

/** What a pass needs, over the table as it stands now. */
export async function passDeps(input: {
  readonly team: Pool;
  readonly own: Pool;
  readonly settings?: Settings;
  readonly pageRows?: number;
}): Promise<PassDeps> {
  const settings = input.settings ?? settingsOf({});
  return {
    team: input.team,
    own: input.own,
    shape: await inspectLocal(input.team, settings.intents),
    place: placeSettings(settings),
    aheadMaxMs: settings.rules.clockSlackMs,
    ...(input.pageRows === undefined ? {} : { pageRows: input.pageRows }),
  };
}

/** Empties the mirror. */
export async function emptyMirror(own: Pool): Promise<void> {
  await own.query("truncate tallyd.intent, tallyd.intent_fault, tallyd.changed, tallyd.source");
}
