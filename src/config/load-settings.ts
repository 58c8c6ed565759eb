import { readFileSync } from "node:fs";

import type { z } from "zod";

import { ConfigError } from "../core/errors.ts";
import type { Settings } from "../core/settings.ts";
import { INTENT_STATES } from "../core/states.ts";
import { entryAt } from "./catalog.ts";
import { crossFaults, hints, livemodeOf } from "./cross-checks.ts";
import { flatNames, getAt, readLayers, seenAt } from "./layers.ts";
import type { Environment, Layers, ReadFile } from "./layers.ts";
import { nearestName } from "./nearest.ts";
import { keysAt, settingsSchema } from "./schema.ts";
import type { CheckedSettings } from "./schema.ts";

/**
 * The settings from the environment and the file that `TALLYD_CONFIG` names; the environment wins.
 * Throws a ConfigError that lists every fault at once (exit code 2).
 */
export function loadSettings(input: {
  readonly env: Environment;
  readonly readFile: ReadFile;
}): Settings {
  const layers = readLayers(input);
  const parsed = settingsSchema.safeParse(layers.raw);
  const faults = [
    ...layers.faults,
    ...(parsed.success ? [] : parsed.error.issues.flatMap((issue) => describeIssue(layers, issue))),
    ...crossFaults(layers),
  ];
  if (!parsed.success || faults.length > 0) throw new ConfigError([...new Set(faults)]);
  return Object.freeze(toSettings(layers, parsed.data));
}

/** {@link loadSettings} of this process: its own environment and disk. */
export function loadOwnSettings(): Settings {
  return loadSettings({ env: process.env, readFile: (path) => readFileSync(path, "utf8") });
}

function describeIssue(layers: Layers, issue: z.core.$ZodIssue): string[] {
  const path = issue.path.map(String).join(".");
  if (issue.code === "unrecognized_keys") {
    const known = [...keysAt(issue.path), ...(issue.path.length === 0 ? flatNames() : [])];
    return issue.keys.map((key) => unknownKey(path === "" ? key : `${path}.${key}`, key, known));
  }
  const seen = getAt(layers.raw, path);
  return [`${nameOf(layers, path)}: saw ${seenAt(path, seen)}; allowed: ${allowedBy(issue)}`];
}

function unknownKey(path: string, key: string, known: readonly string[]): string {
  const near = nearestName(key, known);
  const advice = near === null ? `known here: ${known.join(", ")}` : `did you mean ${near}?`;
  return `${path}: no such setting in the file; ${advice}`;
}

/** The name under which the user gave the setting; for a part of it, the name and the way. */
function nameOf(layers: Layers, path: string): string {
  for (let whole = path; whole !== ""; whole = whole.replace(/\.?[^.]*$/, "")) {
    const given = layers.givenAs.get(whole);
    if (given !== undefined) return `${given}${path.slice(whole.length)}`;
    const entry = entryAt(whole);
    if (entry !== undefined && getAt(layers.raw, path) === undefined && whole === path) {
      return entry.env ?? path;
    }
  }
  return layers.configFile === null ? path : `${path} (in ${layers.configFile})`;
}

function allowedBy(issue: z.core.$ZodIssue): string {
  if (issue.code === "custom" || issue.code === "too_small") return issue.message;
  if (issue.code === "invalid_type") return `a value of type ${issue.expected}`;
  if (issue.code === "invalid_union") {
    const reasons = issue.errors.flatMap((branch) => branch.map((part) => part.message));
    return reasons.length > 0 ? reasons.join(", or ") : issue.message;
  }
  return issue.message;
}

function toSettings(layers: Layers, checked: CheckedSettings): Settings {
  const { intents, stripe, slack, rules, beats } = checked;
  return {
    configFile: layers.configFile,
    warnings: [...layers.warnings, ...hints(checked)],
    databaseUrl: checked.databaseUrl,
    dataDir: checked.dataDir,
    intents: {
      databaseUrl: intents.databaseUrl,
      table: intents.table,
      columns: intents.columns === null ? null : withoutUndefined(intents.columns),
      states: { ...canonicalStates(), ...intents.states },
      namedStates: intents.states,
      write: intents.write === null ? null : withoutUndefined(intents.write),
      timeZone: intents.timeZone,
      create: intents.create ?? createByDefault(layers),
    },
    stripe: {
      apiKey: stripe.apiKey,
      webhookSecrets: stripe.webhookSecret,
      apiBase: stripe.apiBase,
      livemode: livemodeOf(stripe),
      accounts: stripe.accounts,
      metadataKey: stripe.metadataKey,
      referenceKey: stripe.referenceKey,
      keyMetadata: stripe.keyMetadata,
      owned: stripe.owned,
      subscriptions: stripe.subscriptions,
      readsPerSecond: stripe.readsPerSecond,
    },
    chains: checked.chains,
    slackWebhookUrl: slack.webhookUrl,
    slackCriticalWebhookUrl: slack.criticalWebhookUrl,
    slackSigningSecret: slack.signingSecret,
    webhook: webhookOf(checked.webhook),
    pagerDuty: pagerDutyOf(checked.pagerDuty),
    remindersMs: checked.reminders,
    digestAt: checked.digestAt,
    heartbeatUrl: checked.heartbeatUrl,
    publicUrl: checked.publicUrl,
    port: checked.port,
    host: checked.host,
    adminPort: checked.adminPort,
    adminHost: checked.adminHost,
    adminToken: checked.adminToken,
    resolve: checked.resolve,
    rules: toRules(rules),
    firstLookbackMs: checked.firstLookback,
    beats: {
      localMs: beats.local,
      localFullMs: beats.localFull,
      eventsMs: beats.events,
      listsMs: beats.lists,
      auditMs: beats.audit,
      chainsMs: beats.chains,
    },
    timeZone: checked.timeZone,
    logLevel: checked.logLevel,
  };
}

function webhookOf({ url, secret: secrets }: CheckedSettings["webhook"]): Settings["webhook"] {
  return url === null || secrets === null ? null : { url, secrets };
}

function pagerDutyOf(checked: CheckedSettings["pagerDuty"]): Settings["pagerDuty"] {
  const { routingKey, apiBase } = checked;
  return routingKey === null ? null : { routingKey, apiBase };
}

function toRules(rules: CheckedSettings["rules"]): Settings["rules"] {
  return {
    inFlightLimitMs: rules.inFlightLimit,
    asyncLimitMs: rules.asyncLimit,
    orphanGraceMs: rules.orphanGrace,
    retryHorizonMs: rules.retryHorizon,
    duplicateWindowMs: rules.duplicateWindow,
    similarWindowMs: rules.similarWindow,
    attemptWindowMs: rules.attemptWindow,
    safetyLagMs: rules.safetyLag,
    clockSlackMs: rules.clockSlack,
    ladder: rules.ladder,
    allowRepeats: rules.allowRepeats,
    spendCaps: rules.spendCaps,
  };
}

function canonicalStates(): Record<string, string> {
  return Object.fromEntries(INTENT_STATES.map((state) => [state, state]));
}

/** A table of tallyd's own is made only where nobody named one of theirs. */
function createByDefault(layers: Layers): boolean {
  return ["intents.databaseUrl", "intents.table", "intents.columns"].every(
    (path) => getAt(layers.raw, path) === undefined,
  );
}

type Given<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

function withoutUndefined<T extends object>(value: T): Given<T> {
  return Object.fromEntries(
    Object.entries(value).filter(([, item]) => item !== undefined),
  ) as Given<T>;
}
