/** The buttons of a Slack message, and what a click on one of them means. */
import type { ActionsBlock, Button, PlainText } from "./document.ts";

/** What a click asks for, in the order of the buttons. */
export const BUTTON_ACTIONS = ["ack", "mute", "close"] as const;
export type ButtonAction = (typeof BUTTON_ACTIONS)[number];

/** How long the button mutes. */
export const BUTTON_MUTE_MS = 24 * 3_600_000;
/** Names our block among others of a message. */
export const BUTTONS_BLOCK_ID = "tallyd_incident";

const ID_PREFIX = "tallyd_";
// `tallyd_close_double`: what is left after a click has to be labelled without the incident.
const DOUBLE_SUFFIX = "_double";

/** What a button is about. */
export interface Pressable {
  readonly id: string;
  readonly isDouble: boolean;
  /** When the facts were so that the message shows; `null`: not known. */
  readonly seenAt: Date | null;
}

/** The buttons for an incident; `actions`: those that still make sense. */
export function actionsBlock(incident: Pressable, actions: readonly ButtonAction[]): ActionsBlock {
  const elements = actions.map((action) => buttonOf(incident, action));
  return { type: "actions", block_id: BUTTONS_BLOCK_ID, elements };
}

/** What an `action_id` of ours asks for; `null`: it is none of ours. */
export function actionOf(actionId: string): ButtonAction | null {
  const name = actionId.replace(DOUBLE_SUFFIX, "");
  return BUTTON_ACTIONS.find((action) => name === `${ID_PREFIX}${action}`) ?? null;
}

// An id, and since it is written the time of the facts in milliseconds.
const VALUE = /^(inc_[0-9a-f]{12})(?:@(\d{1,15}))?$/;

function valueOf({ id, seenAt }: Pressable): string {
  return seenAt === null ? id : `${id}@${String(seenAt.getTime())}`;
}

/** What a button's value says; `null`: it is none of ours. */
export function readValue(value: string): Pick<Pressable, "id" | "seenAt"> | null {
  const [, id, ms] = VALUE.exec(value) ?? [];
  if (id === undefined) return null;
  return { id, seenAt: ms === undefined ? null : new Date(Number(ms)) };
}

/** Is the click on a button of a double charge? */
export function isDoubleAction(actionId: string): boolean {
  return actionId.endsWith(DOUBLE_SUFFIX);
}

function buttonOf(incident: Pressable, action: ButtonAction): Button {
  const { isDouble } = incident;
  const actionId = `${ID_PREFIX}${action}${isDouble ? DOUBLE_SUFFIX : ""}`;
  const head = { type: "button", action_id: actionId, value: valueOf(incident) } as const;
  switch (action) {
    case "ack":
      return { ...head, text: plain("Acknowledge") };
    case "mute":
      return { ...head, text: plain("Mute 24 h") };
    case "close": {
      const label = isDouble ? "Not a duplicate" : "Close";
      const text =
        "It stays closed as long as the facts stay as they are. Worse ones bring it back.";
      const confirm = { title: plain(`${label}?`), text: plain(text), confirm: plain(label) };
      return { ...head, text: plain(label), confirm: { ...confirm, deny: plain("Cancel") } };
    }
  }
}

function plain(text: string): PlainText {
  return { type: "plain_text", text, emoji: false };
}
