import { createHmac } from "node:crypto";
import { blocksFault } from "./block-rules.ts";

/** What was sent to a response_url and taken. */
export interface SlackResponse {
  readonly path: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** The response_urls of clicks: each may be used five times. */
export interface ResponseUrls {
  /** What was taken, oldest first. */
  readonly taken: readonly SlackResponse[];
  /** Makes the path of a new one. */
  readonly issue: () => string;
  /** Answers a request to one. */
  readonly take: (
    path: string,
    payload: Readonly<Record<string, unknown>> | null,
  ) => { readonly status: number; readonly answer: string };
}

/** A click on a button, as somebody in the channel makes it. */
export interface Click {
  /** The app's Request URL. */
  readonly to: string;
  readonly signingSecret: string;
  readonly userId: string;
  readonly actionId: string;
  readonly value: string;
  /** The message that carries the button. */
  readonly blocks: readonly unknown[];
  readonly responseUrl: string;
  /** Milliseconds. */
  readonly now: number;
}

/** A signed request, ready to be sent as often as one likes. */
export interface ClickRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Slack's limit: five answers within thirty minutes. */
const USES_MAX = 5;

/** Makes the response_urls of a workspace. */
export function createResponseUrls(): ResponseUrls {
  const taken: SlackResponse[] = [];
  const uses = new Map<string, number>();
  return {
    taken,
    issue: () => {
      const path = `/actions/T00000000/${String(uses.size + 1)}/sandboxsandboxsandbox`;
      uses.set(path, 0);
      return path;
    },
    take: (path, payload) => {
      const used = uses.get(path);
      if (used === undefined) return { status: 404, answer: "no_service" };
      if (used >= USES_MAX) return { status: 404, answer: "used_url" };
      if (payload === null) return { status: 400, answer: "invalid_payload" };
      const { blocks, text } = payload;
      if (blocks !== undefined && blocksFault(blocks) !== null) {
        return { status: 400, answer: "invalid_blocks" };
      }
      if (blocks === undefined && typeof text !== "string")
        return { status: 400, answer: "no_text" };
      uses.set(path, used + 1);
      taken.push({ path, payload });
      return { status: 200, answer: "ok" };
    },
  };
}

/** The request that Slack makes of a click. */
export function clickRequest(click: Omit<Click, "to">): ClickRequest {
  const seconds = String(Math.floor(click.now / 1_000));
  const payload = {
    type: "block_actions",
    user: { id: click.userId, username: "ana", name: "ana", team_id: "T00000000" },
    api_app_id: "A00000000",
    container: { type: "message", message_ts: `${seconds}.000100`, is_ephemeral: false },
    trigger_id: `1.2.${seconds}`,
    channel: { id: "C00000000", name: "payments" },
    message: { type: "message", bot_id: "B00000000", blocks: click.blocks },
    response_url: click.responseUrl,
    actions: [
      {
        ...{ type: "button", action_id: click.actionId, block_id: "x", value: click.value },
        action_ts: String(click.now / 1_000),
      },
    ],
  };
  const body = new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
  const signed = createHmac("sha256", click.signingSecret).update(`v0:${seconds}:${body}`);
  const headers = {
    "content-type": "application/x-www-form-urlencoded",
    "x-slack-request-timestamp": seconds,
    "x-slack-signature": `v0=${signed.digest("hex")}`,
  };
  return { headers, body };
}

/** Clicks: sends the request and gives the status of the answer. */
export async function click(input: Click): Promise<number> {
  const { headers, body } = clickRequest(input);
  const answer = await fetch(input.to, { method: "POST", headers, body });
  return answer.status;
}
