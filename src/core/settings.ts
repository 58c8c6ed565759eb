/**
 * The settings of a running tallyd, already checked and frozen. Durations are milliseconds,
 * amounts are bigint minor units. `src/config` builds this from the environment and the
 * optional JSON file; nothing else reads `process.env`.
 */
export type ResolveMode = "write" | "suggest" | "off";

/** One SQL expression per field of an intent; `null` where the team's table has no such field. */
export interface IntentColumns {
  readonly intentId: string;
  readonly accountId: string;
  readonly amount: string;
  readonly currency: string;
  readonly idempotencyKey: string | null;
  readonly state: string;
  readonly chargeId: string | null;
  readonly response: string | null;
  readonly createdAt: string;
  readonly updatedAt: string | null;
  readonly operation: string | null;
  readonly fingerprint: string | null;
  readonly reference: string | null;
  readonly paymentId: string | null;
  readonly customer: string | null;
  readonly rail: string | null;
  readonly network: string | null;
  readonly asset: string | null;
  readonly payer: string | null;
  readonly payee: string | null;
  readonly nonce: string | null;
  readonly validBefore: string | null;
  readonly repeatConfirmed: string | null;
}

/** Plain column names that the resolver may write; `null` = the field is never written. */
export interface IntentWrites {
  readonly state: string;
  readonly chargeId: string | null;
  readonly response: string | null;
  readonly updatedAt: string | null;
  readonly fingerprint: string | null;
}

export interface IntentsSettings {
  readonly databaseUrl: string;
  /** `schema.table`, as written in the setting. */
  readonly table: string;
  /** `null`: no mapping was given, so the columns are found by name (seed table or superset). */
  readonly columns: Partial<IntentColumns> | null;
  /** Team's spelling -> canonical state. Canonical names always map to themselves. */
  readonly states: Readonly<Record<string, string>>;
  /** What the file named, in its order: how the resolver spells a state that it writes. */
  readonly namedStates: Readonly<Record<string, string>>;
  readonly write: Partial<IntentWrites> | null;
  /** IANA zone or offset for `timestamp without time zone` columns; `null`: not configured. */
  readonly timeZone: string | null;
  /** May tallyd create its own superset table where none exists? */
  readonly create: boolean;
}

export interface StripeSettings {
  /** `null`: webhooks only, no reads. */
  readonly apiKey: string | null;
  readonly webhookSecrets: readonly string[];
  /** e.g. `http://127.0.0.1:12111`; `null` = Stripe itself. */
  readonly apiBase: string | null;
  readonly livemode: boolean;
  /** Connected accounts that are watched besides the platform's own. */
  readonly accounts: readonly string[];
  readonly metadataKey: string;
  readonly referenceKey: string;
  /** Metadata keys in which some writers repeat the idempotency key. */
  readonly keyMetadata: readonly string[];
  /** Metadata that marks an object as ours; `null`: everything on the account is ours. */
  readonly owned: { readonly metadata: Readonly<Record<string, string>> } | null;
  readonly subscriptions: "ignore" | "include";
  /** 0 = no limit. */
  readonly readsPerSecond: number;
}

/** A token of a chain; matched by its address, never by its symbol (case B40). */
export interface ChainToken {
  /** Lower case. */
  readonly address: string;
  /** As people write it, e.g. `USDC`; its lower case is the currency of its amounts. */
  readonly symbol: string;
  /** As configured or well known, checked against the contract; `null`: read from it. */
  readonly decimals: number | null;
}

/** `safe`, `finalized`, or a number of blocks where a chain has no such tags. */
export type Finality = "safe" | "finalized" | number;

/** A chain that is watched. */
export interface ChainSettings {
  /** CAIP-2, e.g. `eip155:8453`; also the scope of everything on it. */
  readonly chainId: string;
  /** Secret: endpoints carry their keys in the path. */
  readonly rpcUrls: readonly string[];
  readonly tokens: readonly ChainToken[];
  /** Known bridged twins of the tokens: watched, told apart, never accepted as payment. */
  readonly otherTokens: readonly ChainToken[];
  /** Our own wallets that pay, lower case. */
  readonly payers: readonly string[];
  /** Addresses that are paid for us, lower case. */
  readonly payees: readonly string[];
  /** First block to read; `null`: from before the oldest row that is open. */
  readonly startBlock: number | null;
  readonly finality: Finality;
  /** Machine Payments Protocol: transfers with a memo, and nonces made from a challenge. */
  readonly mpp: { readonly realm: string } | null;
}

export interface SpendCap {
  readonly per: "operation" | "account" | "day";
  readonly currency: string;
  readonly amount: bigint;
}

export interface RepeatRule {
  readonly payee: string;
  readonly maxAmount: bigint;
}

export interface RuleSettings {
  readonly inFlightLimitMs: number;
  /** For payment methods that settle days later (status `processing`). */
  readonly asyncLimitMs: number;
  readonly orphanGraceMs: number;
  readonly retryHorizonMs: number;
  readonly duplicateWindowMs: number;
  readonly similarWindowMs: number;
  /** How long an SDK call may go on retrying after the row was last touched. */
  readonly attemptWindowMs: number;
  /** How far the newest end of a provider list is not yet trusted. */
  readonly safetyLagMs: number;
  /** Slack between the team's clock and Stripe's at the old end of a window. */
  readonly clockSlackMs: number;
  readonly ladder: { readonly stripe: readonly number[]; readonly evm: readonly number[] };
  readonly allowRepeats: readonly RepeatRule[];
  readonly spendCaps: readonly SpendCap[];
}

/** Where signed messages go (Standard Webhooks). */
export interface WebhookSettings {
  readonly url: string;
  /** `whsec_` and the key in base64, at least one; each signs, so that one can follow another. */
  readonly secrets: readonly string[];
}

/** PagerDuty's Events API v2. */
export interface PagerDutySettings {
  /** The integration key of a service. Secret. */
  readonly routingKey: string;
  readonly apiBase: string;
}

export interface Settings {
  /** Path of the JSON file that `TALLYD_CONFIG` named; `null`: the environment alone was read. */
  readonly configFile: string | null;
  /** Remarks about settings that are allowed but look like a slip (unknown names, short tokens). */
  readonly warnings: readonly string[];
  /** `null`: embedded PostgreSQL under `dataDir`. */
  readonly databaseUrl: string | null;
  readonly dataDir: string;
  readonly intents: Omit<IntentsSettings, "databaseUrl"> & { readonly databaseUrl: string | null };
  readonly stripe: StripeSettings;
  readonly chains: readonly ChainSettings[];
  readonly slackWebhookUrl: string | null;
  readonly slackCriticalWebhookUrl: string | null;
  /** Of the Slack app: messages have buttons, and their clicks are taken; `null`: neither. */
  readonly slackSigningSecret: string | null;
  /** Signed HTTP messages to a program of the team's; `null`: none. */
  readonly webhook: WebhookSettings | null;
  /** Critical alerts to PagerDuty; `null`: none. */
  readonly pagerDuty: PagerDutySettings | null;
  /** Waits before reminders of an unacknowledged critical; the last one repeats. Empty: none. */
  readonly remindersMs: readonly number[];
  /** Wall time of the daily digest, `HH:MM` in `timeZone`; `null`: none. */
  readonly digestAt: string | null;
  /** Called after each complete healthy pass of the daemon; `null`: nothing is. */
  readonly heartbeatUrl: string | null;
  /** For links in alerts; `null`: no link, the command is named instead. */
  readonly publicUrl: string | null;
  readonly port: number;
  readonly host: string;
  readonly adminPort: number;
  readonly adminHost: string;
  readonly adminToken: string | null;
  readonly resolve: ResolveMode;
  readonly rules: RuleSettings;
  readonly firstLookbackMs: number;
  /** Beats of the slow readers. */
  readonly beats: {
    readonly localMs: number;
    readonly localFullMs: number;
    readonly eventsMs: number;
    readonly listsMs: number;
    readonly auditMs: number;
    readonly chainsMs: number;
  };
  readonly timeZone: string;
  readonly logLevel: "debug" | "info" | "warn" | "error";
}
