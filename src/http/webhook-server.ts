/**
 * The public port: `POST /webhooks/stripe`, with a Slack app `POST /slack/actions` too, and nothing
 * else. All it knows about a delivery is its raw bytes; the rest is src/ingest.
 */
import express from "express";
import type { Express, NextFunction, Request, Response } from "express";
import type { Pool } from "pg";

import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import { GroupCommit } from "../ingest/group-commit.ts";
import { BODY_BYTES_MAX, receive, refusal, refuseOversize } from "../ingest/receive.ts";
import type { Answer, ReceiveDeps } from "../ingest/receive.ts";
import { TallyBuffer } from "../ingest/tally-buffer.ts";
import { insertEvents } from "../store/inbox.ts";
import { listen } from "./listen.ts";
import type { SlackActions } from "./slack-actions.ts";
import { mountSlackActions } from "./slack-actions.ts";

/** What the server needs. */
export interface WebhookServerDeps {
  readonly pool: Pool;
  readonly settings: ReceiveDeps["settings"];
  readonly clock: Clock;
  readonly log: Log;
  /** Called after a commit that left something to apply: wake whoever applies. */
  readonly onStored: () => void;
  /** Takes clicks in Slack; left out: that path is as unknown as any other. */
  readonly slackActions?: SlackActions | null;
}

/** A running server. */
export interface WebhookServer {
  readonly port: number;
  /** Stops accepting, answers what is under way, and cuts what takes too long. */
  readonly close: () => Promise<void>;
}

/** The one path of the public port. */
export const WEBHOOK_PATH = "/webhooks/stripe";

// One commit may take eight seconds (group-commit.ts); then the process has to go.
const DRAIN_MAX_MS = 10_000;

/** Starts the server; port 0 takes any free one. Throws `ConfigError` when it cannot listen. */
export async function startWebhookServer(
  deps: WebhookServerDeps,
  options: { readonly host: string; readonly port: number },
): Promise<WebhookServer> {
  const tallies = new TallyBuffer({ db: deps.pool, clock: deps.clock, log: deps.log });
  const commit = new GroupCommit((events) =>
    insertEvents(deps.pool, { events, via: "webhook", now: deps.clock.now() }),
  );
  let closing = false;
  let answered = (): Promise<void> => Promise.resolve();
  const app = webhookApp(
    { ...deps, tallies, commit },
    {
      isClosing: () => closing,
      mount: (app) => {
        const { slackActions } = deps;
        if (slackActions) answered = mountSlackActions(app, slackActions);
      },
    },
  );
  const server = await listen(app, { ...options, settings: { host: "HOST", port: "PORT" } });
  return {
    port: server.port,
    close: async () => {
      closing = true;
      await server.close(DRAIN_MAX_MS);
      await answered();
      await tallies.flush();
    },
  };
}

function webhookApp(
  deps: ReceiveDeps,
  more: { readonly isClosing: () => boolean; readonly mount: (app: Express) => void },
): Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.use((_request, response, next) => {
    // A kept connection would hold up the drain.
    if (more.isClosing()) response.set("Connection", "close");
    next();
  });
  more.mount(app);
  app.post(
    WEBHOOK_PATH,
    // Every content type is read, so that the refusal can name it.
    express.raw({ type: () => true, limit: BODY_BYTES_MAX, inflate: false }),
    async (request: Request, response: Response) => {
      const body: unknown = request.body;
      const answer = await receive(deps, {
        rawBody: Buffer.isBuffer(body) ? body : Buffer.alloc(0),
        signatureHeader: request.get("stripe-signature"),
        contentType: request.get("content-type"),
        receivedAt: deps.clock.now(),
      });
      send(response, answer);
    },
  );
  app.all(WEBHOOK_PATH, (request, response) => {
    response.set("Allow", "POST");
    send(
      response,
      refusal(405, "method_not_allowed", `${request.method} was sent; ${WEBHOOK_PATH} takes POST.`),
    );
  });
  app.use((_request, response) => {
    send(response, refusal(404, "not_found", `This port answers POST ${WEBHOOK_PATH} only.`));
  });
  app.use((error: unknown, _request: Request, response: Response, next: NextFunction) => {
    if (response.headersSent) {
      next(error);
      return;
    }
    send(response, answerTo(deps, error));
  });
  return app;
}

/** What the body reader refused; anything else is a fault of ours. */
function answerTo(deps: Pick<ReceiveDeps, "tallies" | "log">, error: unknown): Answer {
  const status = statusOf(error);
  if (status === 413) return refuseOversize(deps);
  if (status === 415) {
    return refusal(
      415,
      "unsupported_encoding",
      "A compressed body was sent; plain bytes are read.",
    );
  }
  if (status !== null && status >= 400 && status < 500) {
    return refusal(status, "bad_request", "The request could not be read.");
  }
  deps.log.error("the webhook route failed", { error: String(error) });
  return refusal(500, "internal", "tallyd failed on this request; deliver it again.");
}

function statusOf(error: unknown): number | null {
  if (typeof error !== "object" || error === null || !("status" in error)) return null;
  return typeof error.status === "number" ? error.status : null;
}

function send(response: Response, answer: Answer): void {
  response.status(answer.status).json(answer.body);
}
