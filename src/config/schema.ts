import { z } from "zod";

import { INTENT_STATES } from "../core/states.ts";
import { entryAt } from "./catalog.ts";
import { chains } from "./chain-shape.ts";
import * as values from "./values.ts";

/** The catalogue's default, spelled as a user would write it, read like a user's own value. */
function withDefault<T extends z.ZodType>(path: string, type: T) {
  return type.prefault((entryAt(path)?.default ?? "") as z.input<T>);
}

function orNull<T extends z.ZodType>(type: T) {
  return type.optional().transform((parsed) => parsed ?? null);
}

const expression = values.text.optional();

/** One SQL expression per field; the names are those of `IntentColumns`. */
export const columnsSchema = z.strictObject({
  intentId: expression,
  accountId: expression,
  amount: expression,
  currency: expression,
  idempotencyKey: expression,
  state: expression,
  chargeId: expression,
  response: expression,
  createdAt: expression,
  updatedAt: expression,
  operation: expression,
  fingerprint: expression,
  reference: expression,
  paymentId: expression,
  customer: expression,
  rail: expression,
  network: expression,
  asset: expression,
  payer: expression,
  payee: expression,
  nonce: expression,
  validBefore: expression,
  repeatConfirmed: expression,
});

const intents = z.strictObject({
  databaseUrl: orNull(values.databaseUrl),
  table: withDefault("intents.table", values.relation),
  columns: orNull(columnsSchema),
  states: z.record(z.string(), values.oneOf(INTENT_STATES)).prefault({}),
  write: orNull(
    z.strictObject({
      state: values.text,
      chargeId: expression,
      response: expression,
      updatedAt: expression,
      fingerprint: expression,
    }),
  ),
  timeZone: orNull(values.zoneOrOffset),
  create: orNull(values.yesNo),
});

const stripe = z.strictObject({
  apiKey: orNull(values.stripeKey),
  webhookSecret: values.webhookSecrets.optional().transform((secrets) => secrets ?? []),
  apiBase: orNull(values.webAddress),
  livemode: orNull(values.yesNo),
  accounts: withDefault("stripe.accounts", values.accounts),
  metadataKey: withDefault("stripe.metadataKey", values.text),
  referenceKey: withDefault("stripe.referenceKey", values.text),
  keyMetadata: withDefault("stripe.keyMetadata", values.names),
  owned: orNull(
    z.strictObject({
      metadata: z.record(z.string(), values.text),
    }),
  ),
  subscriptions: withDefault("stripe.subscriptions", values.oneOf(["ignore", "include"])),
  readsPerSecond: withDefault("stripe.readsPerSecond", values.readsPerSecond),
});

const rules = z.strictObject({
  inFlightLimit: withDefault("rules.inFlightLimit", values.duration),
  asyncLimit: withDefault("rules.asyncLimit", values.duration),
  orphanGrace: withDefault("rules.orphanGrace", values.duration),
  retryHorizon: withDefault("rules.retryHorizon", values.duration),
  duplicateWindow: withDefault("rules.duplicateWindow", values.duration),
  similarWindow: withDefault("rules.similarWindow", values.duration),
  attemptWindow: withDefault("rules.attemptWindow", values.duration),
  safetyLag: withDefault("rules.safetyLag", values.duration),
  clockSlack: withDefault("rules.clockSlack", values.duration),
  ladder: z
    .strictObject({
      stripe: withDefault("rules.ladder.stripe", values.ladder),
      evm: withDefault("rules.ladder.evm", values.ladder),
    })
    .prefault({}),
  allowRepeats: z
    .array(z.strictObject({ payee: values.text, maxAmount: values.amount }))
    .prefault([]),
  spendCaps: z
    .array(
      z.strictObject({
        per: values.oneOf(["operation", "account", "day"]),
        currency: values.currency,
        amount: values.amount,
      }),
    )
    .prefault([]),
});

const beats = z.strictObject({
  local: withDefault("beats.local", values.beat),
  localFull: withDefault("beats.localFull", values.beat),
  events: withDefault("beats.events", values.beat),
  lists: withDefault("beats.lists", values.beat),
  audit: withDefault("beats.audit", values.beat),
  chains: withDefault("beats.chains", values.beat),
});

/** The file's shape with the environment laid over it. */
export const settingsSchema = z.strictObject({
  databaseUrl: orNull(values.databaseUrl),
  dataDir: withDefault("dataDir", values.text),
  resolve: withDefault("resolve", values.oneOf(["write", "suggest", "off"])),
  publicUrl: orNull(values.webAddress),
  reminders: withDefault("reminders", values.reminders),
  digestAt: withDefault("digestAt", values.wallTime),
  timeZone: withDefault("timeZone", values.zone),
  logLevel: withDefault("logLevel", values.oneOf(["debug", "info", "warn", "error"])),
  firstLookback: withDefault("firstLookback", values.duration),
  intents: intents.prefault({}),
  stripe: stripe.prefault({}),
  chains: chains.prefault([]),
  slack: z
    .strictObject({
      webhookUrl: orNull(values.webAddress),
      criticalWebhookUrl: orNull(values.webAddress),
      signingSecret: orNull(values.slackSigningSecret),
    })
    .prefault({}),
  webhook: z
    .strictObject({ url: orNull(values.exactAddress), secret: orNull(values.signingKeys) })
    .prefault({}),
  pagerDuty: z
    .strictObject({
      routingKey: orNull(values.routingKey),
      apiBase: withDefault("pagerDuty.apiBase", values.webAddress),
    })
    .prefault({}),
  heartbeatUrl: orNull(values.exactAddress),
  port: withDefault("port", values.port),
  host: withDefault("host", values.host),
  adminPort: withDefault("adminPort", values.port),
  adminHost: withDefault("adminHost", values.host),
  adminToken: orNull(values.token),
  rules: rules.prefault({}),
  beats: beats.prefault({}),
});

/** Settings as zod checked them, before the rules that concern several at once. */
export type CheckedSettings = z.output<typeof settingsSchema>;

/**
 * The keys that a file may hold at `path`, for the advice about an unknown one; empty where any
 * key goes.
 */
export function keysAt(path: readonly PropertyKey[]): string[] {
  let type: unknown = settingsSchema;
  for (const part of path) {
    type = unwrapped(type);
    if (type instanceof z.ZodObject) type = (type.shape as Record<string, unknown>)[String(part)];
    else if (type instanceof z.ZodArray) type = type.element;
    else return [];
  }
  type = unwrapped(type);
  return type instanceof z.ZodObject ? Object.keys(type.shape) : [];
}

function unwrapped(type: unknown): unknown {
  if (type instanceof z.ZodPipe) return unwrapped(type.in);
  if (type instanceof z.ZodOptional || type instanceof z.ZodPrefault)
    return unwrapped(type.unwrap());
  return type;
}
