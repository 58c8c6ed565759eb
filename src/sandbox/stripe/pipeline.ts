import type { IncomingMessage } from "node:http";
import { authenticate, requireAccount, requirePermission } from "./auth.ts";
import type { Caller } from "./auth.ts";
import type { Call } from "./call.ts";
import { ApiError, missing, serverError } from "./errors.ts";
import { pause } from "./exchange.ts";
import type { Reply } from "./exchange.ts";
import { faultOf, strike } from "./faults.ts";
import type { Fault } from "./faults.ts";
import { canonicalParams, decodeForm } from "./form.ts";
import type { Params } from "./form.ts";
import type { KeyClaim } from "./idempotency.ts";
import type { JournalEntry } from "./journal.ts";
import type { Match, Router } from "./router.ts";
import { requestVersion } from "./versions.ts";
import { spaceOf } from "./world.ts";
import type { World } from "./world.ts";

/** An API request after reading, before anything is decided about it. */
export interface ApiRequest {
  readonly incoming: IncomingMessage;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly body: string;
  readonly requestId: string;
}

/** An answer and the faults that its sending suffers. */
export interface Outcome {
  readonly reply: Reply;
  readonly struck: readonly Fault[];
  readonly entry: JournalEntry;
}

function header(request: ApiRequest, name: string): string | undefined {
  const value = request.incoming.headers[name];
  return typeof value === "string" ? value : undefined;
}

function errorReply(error: unknown): { error: ApiError; reply: Reply } {
  // A fault of the sandbox itself must be seen in the test, so its text is kept.
  const known =
    error instanceof ApiError
      ? error
      : new ApiError(500, { type: "api_error", message: `sandbox fault: ${String(error)}` });
  const body = JSON.stringify({ error: known.body });
  return { error: known, reply: { status: known.status, body, headers: known.headers } };
}

/** Faults of the limiter and of dead back ends: before the idempotency layer, nothing runs. */
function refuse(struck: readonly Fault[]): void {
  const limit = faultOf(struck, "rate_limit");
  if (limit !== undefined) {
    throw new ApiError(
      429,
      {
        type: "invalid_request_error",
        code: "rate_limit",
        message: "Request rate limit exceeded.",
      },
      {
        headers: {
          "stripe-rate-limited-reason": limit.reason ?? "endpoint-rate",
          ...(limit.retryAfter === undefined ? {} : { "retry-after": limit.retryAfter }),
        },
      },
    );
  }
  if (faultOf(struck, "lock_timeout") !== undefined) {
    throw new ApiError(
      429,
      {
        type: "invalid_request_error",
        code: "lock_timeout",
        message: "This object cannot be accessed right now: another request is working on it.",
      },
      { headers: { "stripe-should-retry": "true" } },
    );
  }
  const broken = faultOf(struck, "error_before");
  if (broken !== undefined) throw serverError(false, broken.status);
}

function cannedReply(fault: Fault): Reply {
  const body = typeof fault.body === "string" ? fault.body : JSON.stringify(fault.body ?? {});
  return { status: fault.status ?? 200, body, headers: fault.headers ?? {} };
}

function paramsOf(request: ApiRequest): Params {
  try {
    const query = decodeForm(request.query);
    return request.method === "POST" ? { ...query, ...decodeForm(request.body) } : query;
  } catch (error) {
    throw new ApiError(400, { type: "invalid_request_error", message: String(error) });
  }
}

/** Runs one API request to its answer. */
export class Pipeline {
  readonly #world: World;
  readonly #router: Router;

  constructor(world: World, router: Router) {
    this.#world = world;
    this.#router = router;
  }

  /** Answers a request; never rejects. */
  async run(request: ApiRequest): Promise<Outcome> {
    const entry = this.#note(request);
    let struck: readonly Fault[] = [];
    let reply: Reply;
    try {
      const caller = authenticate(request.incoming.headers, this.#world.revoked);
      const account = requireAccount(caller, this.#world.platform, this.#world.accounts);
      Object.assign(entry, { account, livemode: caller.livemode });
      struck = strike(this.#world.faults, { method: request.method, path: request.path, account });
      entry.faults = struck.map((fault) => fault.kind);
      refuse(struck);
      requirePermission(caller, request.method);
      reply = await this.#answer(request, caller, struck, entry);
    } catch (error) {
      reply = errorReply(error).reply;
    }
    entry.status = reply.status;
    const id =
      faultOf(struck, "lock_timeout") === undefined ? { "request-id": request.requestId } : {};
    // The sandbox's clock, not the machine's: readers take Stripe's time from this header.
    const date = new Date(this.#world.clock.now()).toUTCString();
    return { reply: { ...reply, headers: { date, ...id, ...reply.headers } }, struck, entry };
  }

  #note(request: ApiRequest): JournalEntry {
    const entry: JournalEntry = {
      requestId: request.requestId,
      at: this.#world.clock.now(),
      method: request.method,
      path: request.path,
      query: request.query,
      account: this.#world.platform,
      livemode: false,
      idempotencyKey: header(request, "idempotency-key") ?? null,
      version: header(request, "stripe-version") ?? null,
      userAgent: header(request, "user-agent") ?? null,
      status: 0,
      replayed: false,
      faults: [],
    };
    this.#world.journal.add(entry);
    return entry;
  }

  async #answer(
    request: ApiRequest,
    caller: Caller,
    struck: readonly Fault[],
    entry: JournalEntry,
  ): Promise<Reply> {
    const canned = faultOf(struck, "respond");
    if (canned !== undefined) return cannedReply(canned);
    const match = this.#router(request.method, request.path);
    if (match === undefined) {
      const message = `Unrecognized request URL (${request.method}: ${request.path}).`;
      throw new ApiError(404, { type: "invalid_request_error", message });
    }
    this.#world.journal.count(`${request.method} ${match.route.path}`);
    const params = paramsOf(request);
    const claim = this.#claim(request, caller, params, entry);
    if (claim.replay !== null) {
      entry.replayed = true;
      const { status, body, requestId } = claim.replay;
      const headers = { "idempotent-replayed": "true", "original-request": requestId };
      return { status, body, headers };
    }
    return this.#execute(request, caller, { match, params, claim, struck, entry });
  }

  #claim(request: ApiRequest, caller: Caller, params: Params, entry: JournalEntry): KeyClaim {
    const key = entry.idempotencyKey;
    if (request.method !== "POST" || key === null) {
      return { replay: null, save: () => undefined, release: () => undefined };
    }
    return this.#world.keys.claim({
      scope: `${entry.account} ${caller.livemode ? "live" : "test"}`,
      key,
      path: request.path,
      params: canonicalParams(params),
      now: entry.at,
    });
  }

  async #execute(
    request: ApiRequest,
    caller: Caller,
    run: {
      readonly match: Match;
      readonly params: Params;
      readonly claim: KeyClaim;
      readonly struck: readonly Fault[];
      readonly entry: JournalEntry;
    },
  ): Promise<Reply> {
    const { match, params, claim, struck, entry } = run;
    try {
      const delay = faultOf(struck, "delay")?.delayMs;
      if (delay !== undefined) await pause(delay);
      if (faultOf(struck, "resource_missing") !== undefined) throw missing("object", match.id);
      const named = header(request, "stripe-version");
      const version = requestVersion(named, this.#world.apiVersion);
      const call: Call = {
        world: this.#world,
        space: spaceOf(this.#world, entry.account, caller.livemode),
        cause: {
          requestId: request.method === "GET" ? null : request.requestId,
          idempotencyKey: entry.idempotencyKey,
        },
        version,
        versionNamed: named !== undefined,
        params,
        id: match.id,
        path: request.path,
        hideLatestCharge: faultOf(struck, "no_latest_charge") !== undefined,
      };
      const body = JSON.stringify(match.route.handle(call));
      const broken = faultOf(struck, "error_after");
      if (broken !== undefined) throw serverError(true, broken.status);
      claim.save({ status: 200, body, requestId: request.requestId });
      return { status: 200, body, headers: { "stripe-version": version } };
    } catch (error) {
      const failed = errorReply(error);
      const { status, body } = failed.reply;
      if (failed.error.saved) claim.save({ status, body, requestId: request.requestId });
      else claim.release();
      return failed.reply;
    }
  }
}
