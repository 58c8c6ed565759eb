import Stripe from "stripe";
import type { Clock } from "../../core/clock.ts";
import { ConfigError, UnreadableError } from "../../core/errors.ts";
import { stripeAccountOf, stripeScope } from "../../core/scope.ts";
import type { StripeSettings } from "../../core/settings.ts";
import { createClockGap } from "./clock-gap.ts";
import type { Timer } from "./pace.ts";
import { createPacer, systemTimer } from "./pace.ts";
import { readOnlyHttp } from "./read-only-http.ts";
import { createSerially, readWithRetries } from "./read-with-retries.ts";
import type { StripeObject } from "./stripe-object.ts";
import { asObject, asPage, pathOf, refuseOtherModeObject } from "./stripe-object.ts";
import { isMissing } from "./translate-error.ts";

/** The lists that are read. */
export type ListResource = "payment_intents" | "charges" | "refunds" | "disputes" | "events";

/** Bounds in whole Unix seconds, half-open: `from` is included, `to` is not. */
export interface ListParams {
  readonly created?: { readonly from: number; readonly to: number };
  readonly startingAfter?: string;
  /** Objects a page, 1 to 100; default 100. */
  readonly limit?: number;
  /** Events only: at most 20 types. */
  readonly types?: readonly string[];
  /** Charges only: all attempts of one payment intent. */
  readonly paymentIntent?: string;
}

/**
 * One page, newest first; or the object of `startingAfter` is gone and the walk must restart.
 * `readAt`: when the read began, in Stripe's clock; what it shows is not older than that.
 */
export type ListPage =
  | {
      readonly kind: "page";
      readonly objects: readonly StripeObject[];
      readonly hasMore: boolean;
      readonly readAt: Date;
    }
  | { readonly kind: "cursor_gone" };

/** What a read by id gave. `missing` is what Stripe said at this moment and no proof by itself. */
export type Retrieved =
  | { readonly kind: "found"; readonly object: StripeObject; readonly readAt: Date }
  | { readonly kind: "missing" };

/** The only way to Stripe: reads, nothing else (invariant 1). All throw UnreadableError. */
export interface StripeReader {
  /** Reads one object by its id (prefixes pi_, ch_, py_, re_, pyr_, du_, dp_, evt_). */
  readonly retrieve: (scope: string, id: string) => Promise<Retrieved>;
  /** Reads one page of a list. */
  readonly list: (scope: string, resource: ListResource, params: ListParams) => Promise<ListPage>;
  /** The account that the key belongs to. */
  readonly account: () => Promise<StripeObject>;
  /**
   * How far our clock is ahead of Stripe's by the last answer's `Date`, in milliseconds (negative:
   * behind; good to a second). `null` before the first answer.
   */
  readonly clockAheadMs: () => number | null;
  /** Now in Stripe's clock, as far as it is known; ours before the first answer. */
  readonly stripeNow: () => Date;
}

/** What the client needs; everything is optional but the clock. */
export interface StripeDeps {
  readonly clock: Clock;
  readonly timer?: Timer;
  readonly random?: () => number;
  /** Counts each request that goes out: see store/read-counts.ts. */
  readonly count?: (scope: string, endpoint: string) => void;
}

// A list of 100 objects takes Stripe a second or two; ten times that is a stalled connection.
const SOCKET_SILENT_MS_MAX = 20_000;
// An answer that drips in byte by byte never looks silent, so the whole read is bounded too.
const READ_MS_MAX = 60_000;
// The page size that costs the fewest reads; Stripe's maximum.
const PAGE_OBJECTS_MAX = 100;

/**
 * Opens Stripe for reading. Throws ConfigError when the key cannot belong to the watched mode: its
 * lists would be empty, and an empty list would look like proof of absence.
 */
export function openStripe(
  settings: Pick<StripeSettings, "apiBase" | "livemode" | "readsPerSecond"> & {
    readonly apiKey: string;
  },
  deps: StripeDeps,
): StripeReader {
  refuseOtherMode(settings.apiKey, settings.livemode);
  const timer = deps.timer ?? systemTimer();
  const retryDeps = {
    pacer: createPacer({ readsPerSecond: settings.readsPerSecond, timer }),
    timer,
    random: deps.random ?? Math.random,
    serially: createSerially(),
  };
  const gap = createClockGap(deps.clock);
  const sdk = openSdk(settings, {
    onSent: ({ account, endpoint }) => {
      deps.count?.(stripeScope(account, settings.livemode), endpoint);
    },
    onDate: gap.note,
  });
  const read: Read = async (scope, path, what) => {
    const lane = `${scope} ${path.split(/[/?]/)[2] ?? ""}`;
    return readWithRetries(retryDeps, {
      lane,
      what,
      attempt: async () => {
        const beganAt = deps.clock.now();
        const body = await boundedRead(() => send(sdk, scope, path), what);
        return { body, readAt: gap.theirTime(beganAt) };
      },
    });
  };
  const platform = stripeScope(null, settings.livemode);
  return {
    retrieve: (scope, id) => retrieve(read, settings.livemode, { scope, id }),
    list: (scope, resource, params) => list(read, settings.livemode, { scope, resource, params }),
    account: async () => asObject((await read(platform, "/v1/account", "account")).body, "account"),
    clockAheadMs: gap.aheadMs,
    stripeNow: () => gap.theirTime(deps.clock.now()),
  };
}

type Read = (
  scope: string,
  path: string,
  what: string,
) => Promise<{ readonly body: unknown; readonly readAt: Date }>;

async function retrieve(
  read: Read,
  livemode: boolean,
  input: { readonly scope: string; readonly id: string },
): Promise<Retrieved> {
  const { scope, id } = input;
  const what = `${id} of ${scope}`;
  const path = pathOf(id);
  if (path === null) {
    throw new UnreadableError(
      "shape",
      `${what}: ids that begin with pi_, ch_, py_, re_, pyr_, du_, dp_ or evt_ can be read`,
    );
  }
  // The charge comes with its intent, so that one read shows both.
  const expand = path === "payment_intents" ? "?expand%5B%5D=latest_charge" : "";
  try {
    const { body, readAt } = await read(
      scope,
      `/v1/${path}/${encodeURIComponent(id)}${expand}`,
      what,
    );
    const object = asObject(body, what);
    refuseOtherModeObject(object, livemode, what);
    return { kind: "found", object, readAt };
  } catch (error) {
    if (error instanceof UnreadableError && isMissing(error.cause)) return { kind: "missing" };
    throw error;
  }
}

async function list(
  read: Read,
  livemode: boolean,
  input: { readonly scope: string; readonly resource: ListResource; readonly params: ListParams },
): Promise<ListPage> {
  const { scope, resource, params } = input;
  const what = `${resource} of ${scope}`;
  try {
    const { body, readAt } = await read(scope, `/v1/${resource}?${listQuery(params)}`, what);
    const page = asPage(body, what);
    for (const object of page.objects) refuseOtherModeObject(object, livemode, what);
    return { kind: "page", ...page, readAt };
  } catch (error) {
    const gone = error instanceof UnreadableError && isMissing(error.cause);
    if (gone && params.startingAfter !== undefined) return { kind: "cursor_gone" };
    throw error;
  }
}

function openSdk(
  settings: { readonly apiBase: string | null; readonly apiKey: string },
  notes: Parameters<typeof readOnlyHttp>[0],
): Stripe {
  return new Stripe(settings.apiKey, {
    // Retries are ours, with named limits; the SDK's own would hide how many reads were made.
    maxNetworkRetries: 0,
    timeout: SOCKET_SILENT_MS_MAX,
    telemetry: false,
    appInfo: { name: "tallyd" },
    httpClient: readOnlyHttp(notes),
    ...baseOf(settings.apiBase),
  });
}

function baseOf(
  apiBase: string | null,
): { host: string; port: string; protocol: "http" | "https" } | Record<string, never> {
  if (apiBase === null) return {};
  const url = new URL(apiBase);
  const protocol = url.protocol === "http:" ? "http" : "https";
  const port = url.port === "" ? (protocol === "http" ? "80" : "443") : url.port;
  return { host: url.hostname, port, protocol };
}

async function send(sdk: Stripe, scope: string, path: string): Promise<unknown> {
  const account = stripeAccountOf(scope);
  return sdk.rawRequest("GET", path, undefined, account === null ? {} : { stripeAccount: account });
}

async function boundedRead<T>(attempt: () => Promise<T>, what: string): Promise<T> {
  let deadline: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    deadline = setTimeout(() => {
      reject(
        new UnreadableError(
          "network",
          `${what}: no complete answer within ${String(READ_MS_MAX / 1_000)} s`,
        ),
      );
    }, READ_MS_MAX);
  });
  try {
    return await Promise.race([attempt(), late]);
  } finally {
    clearTimeout(deadline);
  }
}

function listQuery(params: ListParams): string {
  const query = new URLSearchParams({ limit: String(params.limit ?? PAGE_OBJECTS_MAX) });
  if (params.created !== undefined) {
    query.set("created[gte]", String(params.created.from));
    query.set("created[lt]", String(params.created.to));
  }
  if (params.startingAfter !== undefined) query.set("starting_after", params.startingAfter);
  if (params.paymentIntent !== undefined) query.set("payment_intent", params.paymentIntent);
  for (const type of params.types ?? []) query.append("types[]", type);
  return query.toString();
}

function refuseOtherMode(apiKey: string, livemode: boolean): void {
  const mode = /^(?:sk|rk)_(live|test)_/.exec(apiKey)?.[1];
  const watched = livemode ? "live" : "test";
  if (mode === undefined || mode === watched) return;
  throw new ConfigError([
    `STRIPE_API_KEY: a key of ${mode} mode was given while stripe.livemode watches ${watched} ` +
      `mode: give a ${watched} key or change stripe.livemode`,
  ]);
}
