import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { answerAdmin } from "./admin.ts";
import { createClock } from "./clock.ts";
import { createControl } from "./control.ts";
import type { Control } from "./control.ts";
import { Deliverer } from "./deliver.ts";
import type { Endpoint } from "./deliver.ts";
import type { EventRule } from "./event-rules.ts";
import { readBody, send, sendCut } from "./exchange.ts";
import type { Reply } from "./exchange.ts";
import { createFaults, faultOf } from "./faults.ts";
import { IdempotencyKeys } from "./idempotency.ts";
import { createIds } from "./ids.ts";
import { createJournal } from "./journal.ts";
import { Pipeline } from "./pipeline.ts";
import type { Outcome } from "./pipeline.ts";
import { createRouter } from "./router.ts";
import { API_ROUTES } from "./routes.ts";
import { RuleBook } from "./rules.ts";
import { createTracker } from "./tracker.ts";
import { PINNED_VERSION } from "./versions.ts";
import type { Settings, World } from "./world.ts";

/** Paths that steer the sandbox from another process. */
const ADMIN_PREFIX = "/_sandbox/";

/** How a sandbox is set up; everything has a default. */
export interface StripeSandboxOptions {
  /** Default 0: any free port. */
  readonly port?: number;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Milliseconds since the Unix epoch; default the machine's clock. */
  readonly now?: () => number;
  /** The platform account's id. */
  readonly account?: string;
  /** Connected accounts that exist; by default every name does. */
  readonly connectedAccounts?: readonly string[];
  /** The account's API version: of its events, and of calls that name none. */
  readonly apiVersion?: string;
  /** Equal seeds give equal ids. */
  readonly seed?: string;
  readonly settings?: Partial<Settings>;
}

/** A running sandbox. */
export interface StripeSandbox {
  /** `http://127.0.0.1:PORT`, without a slash at the end. */
  readonly url: string;
  readonly port: number;
  readonly control: Control;
  readonly close: () => Promise<void>;
}

const DEFAULTS: Settings = {
  searchLagMs: 0,
  asyncCaptureMs: 10,
  // Stripe's three days, shortened so that a test sees the end of it.
  retryScheduleMs: [50, 200, 800],
  deliveryTimeoutMs: 10_000,
};

function createWorld(options: StripeSandboxOptions): World {
  const clock = createClock(options.now ?? Date.now);
  const tracker = createTracker();
  const endpoints = new Map<string, Endpoint>();
  const eventRules = new RuleBook<EventRule>();
  const settings: Settings = { ...DEFAULTS, ...options.settings };
  const known = options.connectedAccounts;
  return {
    clock,
    ids: createIds(options.seed ?? "sandbox"),
    tracker,
    journal: createJournal(),
    faults: createFaults(),
    eventRules,
    keys: new IdempotencyKeys(),
    settings,
    platform: options.account ?? "acct_1SandboxPlatform",
    apiVersion: options.apiVersion ?? PINNED_VERSION,
    accounts: known === undefined ? null : new Set(known),
    revoked: new Set(),
    spaces: new Map(),
    endpoints,
    deliverer: new Deliverer({ clock, tracker, endpoints, eventRules, settings }),
  };
}

function deliverOutcome(response: ServerResponse, outcome: Outcome): void {
  if (faultOf(outcome.struck, "lost_response") !== undefined) {
    outcome.entry.status = 0;
    response.destroy();
  } else if (faultOf(outcome.struck, "cut_body") !== undefined) {
    sendCut(response, outcome.reply);
  } else {
    send(response, outcome.reply);
  }
}

/** What one request is handled with. */
interface Desk {
  readonly world: World;
  readonly pipeline: Pipeline;
  readonly control: Control;
}

async function handle(
  desk: Desk,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await readBody(incoming);
  const url = incoming.url ?? "/";
  const mark = url.indexOf("?");
  const path = decodeURIComponent(mark < 0 ? url : url.slice(0, mark));
  const query = mark < 0 ? "" : url.slice(mark + 1);
  const method = incoming.method ?? "GET";
  if (path.startsWith(ADMIN_PREFIX)) {
    const action = path.slice(ADMIN_PREFIX.length);
    send(response, await answerAdmin(desk.control, { method, action, body }));
    return;
  }
  const requestId = desk.world.ids.next("req");
  deliverOutcome(
    response,
    await desk.pipeline.run({ incoming, method, path, query, body, requestId }),
  );
}

const BROKEN: Reply = { status: 400, body: `{"error":{"message":"bad request"}}`, headers: {} };

function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/**
 * Starts a stand-in for the Stripe API on real HTTP. It keeps everything in memory and knows only
 * what its callers and `control` put in. Rejects when the port is taken.
 */
export async function startStripeSandbox(
  options: StripeSandboxOptions = {},
): Promise<StripeSandbox> {
  const world = createWorld(options);
  const control = createControl(world);
  const desk: Desk = { world, control, pipeline: new Pipeline(world, createRouter(API_ROUTES)) };
  const server = createServer((incoming, response) => {
    handle(desk, incoming, response).catch(() => {
      if (response.headersSent) response.destroy();
      else send(response, BROKEN);
    });
  });
  const host = options.host ?? "127.0.0.1";
  const port = await listen(server, options.port ?? 0, host);
  return {
    url: `http://${host}:${String(port)}`,
    port,
    control,
    close: () =>
      new Promise((resolve) => {
        world.tracker.stop();
        world.deliverer.close();
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
}
