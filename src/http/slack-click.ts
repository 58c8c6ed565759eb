/** The click on a button as Slack tells of it: "block_actions payload" of Slack's reference. */
import { z } from "zod";

import type { ButtonAction, Pressable } from "../alert/buttons.ts";
import { actionOf, isDoubleAction, readValue } from "../alert/buttons.ts";

/** A click on a button of ours. */
export interface Click {
  readonly action: ButtonAction;
  readonly incident: Pressable;
  /** Slack's id of the person; never a name. */
  readonly userId: string;
  /** Where the message can be changed; `null`: nowhere. Not checked yet. */
  readonly responseUrl: string | null;
  /** The message as it stands, to be shown again with what was done. */
  readonly blocks: readonly Readonly<Record<string, unknown>>[];
}

// Far above any Slack id; a longer one does not fit into `actor`.
const USER_ID = /^[A-Z0-9]{2,32}$/;

const clickShape = z.object({
  type: z.literal("block_actions"),
  user: z.object({ id: z.string().regex(USER_ID) }),
  actions: z.array(z.object({ action_id: z.string(), value: z.string().optional() })).min(1),
  response_url: z.string().optional(),
  message: z.object({ blocks: z.array(z.record(z.string(), z.unknown())).optional() }).optional(),
});

/** The click of a form body; `null`: it is something else, or a button that is none of ours. */
export function readClick(rawBody: Buffer): Click | null {
  const payload = new URLSearchParams(rawBody.toString("utf8")).get("payload");
  const parsed = clickShape.safeParse(payload === null ? undefined : parsedJson(payload));
  if (!parsed.success) return null;
  const { user, actions, response_url: responseUrl, message } = parsed.data;
  // One click is one action: Slack sends a list for the sake of other elements.
  const [pressed] = actions;
  const action = pressed === undefined ? null : actionOf(pressed.action_id);
  const about = readValue(pressed?.value ?? "");
  if (pressed === undefined || action === null || about === null) return null;
  return {
    ...{ action, userId: user.id },
    incident: { ...about, isDouble: isDoubleAction(pressed.action_id) },
    responseUrl: responseUrl ?? null,
    blocks: message?.blocks ?? [],
  };
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
