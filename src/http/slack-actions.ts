/** `POST /slack/actions`: clicks on the buttons of Slack messages. On the public port. */
import { createHash } from "node:crypto";

import express from "express";
import type { Express, NextFunction, Request, Response } from "express";
import type { Pool } from "pg";

import { BUTTON_MUTE_MS } from "../alert/buttons.ts";
import { answerSlack, doneMessage, failedMessage, mayAnswer } from "../alert/slack-response.ts";
import type { Clock } from "../core/clock.ts";
import { addMs } from "../core/clock.ts";
import { RequestError } from "../core/errors.ts";
import type { Log } from "../core/log.ts";
import { acknowledge, closeByPerson, mute } from "../incident/act.ts";
import type { ProgramSettings } from "../incident/tell-programs.ts";
import type { Click } from "./slack-click.ts";
import { readClick } from "./slack-click.ts";
import { slackSigned } from "./slack-signature.ts";

/** What clicks need. */
export interface SlackActions {
  readonly pool: Pool;
  /** Judges the time of a request. */
  readonly clock: Clock;
  /** The database's clock, for the history of an incident. */
  readonly now: () => Promise<Date>;
  readonly log: Log;
  readonly signingSecret: string;
  /** `https://host` of each place that an answer may go to. */
  readonly origins: readonly string[];
  readonly programs: ProgramSettings;
}

/** The path that the Slack app has as its Request URL for interactivity. */
export const SLACK_ACTIONS_PATH = "/slack/actions";

// A click carries the message; ours has at most fifty blocks, some of 3,000 characters.
const BODY_BYTES_MAX = 512 * 1024;
// Slack shows an error to the person when no answer comes within three seconds.
const ANSWER_WITHIN_MS = 2_500;

/** Mounts the route. The second value waits for the answers that are still on their way. */
export function mountSlackActions(app: Express, deps: SlackActions): () => Promise<void> {
  const pending = new Set<Promise<void>>();
  app.post(
    SLACK_ACTIONS_PATH,
    express.raw({ type: () => true, limit: BODY_BYTES_MAX, inflate: false }),
    async (request: Request, response: Response) => {
      const body: unknown = request.body;
      const rawBody = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
      const signed = {
        ...{ rawBody, receivedAt: deps.clock.now() },
        timestamp: request.get("x-slack-request-timestamp"),
        signature: request.get("x-slack-signature"),
      };
      if (!slackSigned(signed, deps.signingSecret)) {
        response.status(401).end();
        return;
      }
      const click = readClick(rawBody);
      // Links are buttons too, and other apps' parts may stand in the message: Slack wants a 200.
      if (click !== null) {
        const work = carryOut(deps, click, markOf(rawBody));
        const told = work.then((answer) => tell(deps, click, answer));
        pending.add(told);
        void told.finally(() => pending.delete(told));
        await Promise.race([work, wait(ANSWER_WITHIN_MS)]);
      }
      response.status(200).end();
    },
    (error: unknown, _request: Request, response: Response, next: NextFunction) => {
      if (response.headersSent) {
        next(error);
        return;
      }
      response.status(statusOf(error)).end();
    },
  );
  app.all(SLACK_ACTIONS_PATH, (_request, response) => {
    response.set("Allow", "POST").status(405).end();
  });
  return async () => {
    await Promise.all(pending);
  };
}

/** The same bytes are the same click: a request that is replayed changes nothing. */
function markOf(rawBody: Buffer): string {
  return createHash("sha256").update(rawBody).digest("hex").slice(0, 32);
}

type Answer = Readonly<Record<string, unknown>>;

/** Does what was clicked and gives the answer for Slack. Never throws. */
async function carryOut(deps: SlackActions, click: Click, mark: string): Promise<Answer> {
  const { pool, programs } = deps;
  try {
    const now = await deps.now();
    const actor = `slack:${click.userId}`;
    const { id, seenAt } = click.incident;
    const act = { id, actor, note: null, now, mark, seenAt, programs };
    if (click.action === "ack") await acknowledge(pool, act);
    else if (click.action === "close") await closeByPerson(pool, act);
    else await mute(pool, { ...act, until: addMs(now, BUTTON_MUTE_MS) });
    return doneMessage(click, now);
  } catch (error) {
    if (error instanceof RequestError) return failedMessage(error.message);
    deps.log.error("a click in Slack could not be carried out", { error });
    return failedMessage("tallyd failed; its log has the reason. Click again later");
  }
}

async function tell(deps: SlackActions, { responseUrl }: Click, answer: Answer): Promise<void> {
  if (responseUrl === null) return;
  if (!mayAnswer(responseUrl, deps.origins)) {
    deps.log.warn("a click names an answer address that is not Slack's; it is not used");
    return;
  }
  const fault = await answerSlack(responseUrl, answer);
  if (fault === null) return;
  deps.log.warn("the message in Slack could not be changed; what was clicked is done", { fault });
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}

function statusOf(error: unknown): number {
  const status = typeof error === "object" && error !== null && "status" in error && error.status;
  return typeof status === "number" && status >= 400 && status < 500 ? status : 500;
}
