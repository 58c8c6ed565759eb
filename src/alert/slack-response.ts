/** What Slack's `response_url` is told: the message and what a click did, or why it did nothing. */
import type { ButtonAction, Pressable } from "./buttons.ts";
import { BUTTONS_BLOCK_ID, BUTTON_ACTIONS, actionsBlock } from "./buttons.ts";
import { BLOCKS_MAX } from "./document.ts";
import { post } from "./post.ts";
import { clip, escapeSlack } from "./text.ts";

type Block = Readonly<Record<string, unknown>>;

// Slack's own, and that of its cloud for governments.
const SLACK_ORIGINS = ["https://hooks.slack.com", "https://hooks.slack-gov.com"];
const DONE: Readonly<Record<ButtonAction, string>> = {
  ack: "Acknowledged",
  mute: "Muted for 24 h",
  close: "Closed",
};
const REASON_CHARS_MAX = 1_000;

/**
 * Origins that an answer may go to: Slack's, and those of the configured hooks, where a stand-in
 * or a gateway is. Anything else in a request would make tallyd send where a stranger says.
 */
export function responseOrigins(hooks: readonly (string | null)[]): readonly string[] {
  const own = hooks.flatMap((hook) =>
    hook !== null && URL.canParse(hook) ? [new URL(hook).origin] : [],
  );
  return [...new Set([...SLACK_ORIGINS, ...own])];
}

/** May an answer go to this address? */
export function mayAnswer(url: string, origins: readonly string[]): boolean {
  if (!URL.canParse(url)) return false;
  const { origin, username, password } = new URL(url);
  return username === "" && password === "" && origins.includes(origin);
}

/** The message again, with what was done and by whom, and the buttons that still make sense. */
export function doneMessage(
  click: {
    readonly action: ButtonAction;
    readonly incident: Pressable;
    readonly userId: string;
    readonly blocks: readonly Block[];
  },
  at: Date,
): Block {
  const { action, incident, userId } = click;
  const left = BUTTON_ACTIONS.slice(BUTTON_ACTIONS.indexOf(action) + 1);
  const time = `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
  const words =
    action === "close" && incident.isDouble ? "Closed as not a duplicate" : DONE[action];
  // An id is a mention that Slack shows as a name; tallyd never learns that.
  const text = `${words} by <@${userId}>, ${time}`;
  const context: Block = { type: "context", elements: [{ type: "mrkdwn", text }] };
  const buttons: readonly Block[] = left.length === 0 ? [] : [{ ...actionsBlock(incident, left) }];
  const rest = click.blocks.filter((block) => block["block_id"] !== BUTTONS_BLOCK_ID);
  const kept = rest.slice(0, BLOCKS_MAX - 1 - buttons.length);
  return { replace_original: true, text: words, blocks: [...kept, context, ...buttons] };
}

/** For the person who clicked alone; the message stays as it is. */
export function failedMessage(reason: string): Block {
  const text = clip(escapeSlack(`Nothing was changed: ${reason}`), REASON_CHARS_MAX);
  return { response_type: "ephemeral", replace_original: false, text };
}

/** Sends an answer. Gives what went wrong, without the address; `null`: nothing did. */
export async function answerSlack(url: string, message: Block): Promise<string | null> {
  try {
    const { status } = await post(url, { headers: {}, body: JSON.stringify(message) });
    return status >= 200 && status < 300 ? null : `HTTP ${String(status)}`;
  } catch (error) {
    return error instanceof Error ? error.name : "no answer";
  }
}
