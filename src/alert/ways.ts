/** How each way out is used: by whom its messages are taken, how fast, and in which order. */
import type { ClaimedMessage } from "../store/outbox.ts";
import { BugError } from "../core/errors.ts";
import { toSlackText } from "./document.ts";
import type { Payload, ProgramSend } from "./payload.ts";
import type { ProgramChannel } from "./program-route.ts";
import { PROGRAM_CHANNELS } from "./program-route.ts";
import type { Channel } from "./route.ts";
import { CHANNELS } from "./route.ts";
import type { SendOutcome } from "./send-outcome.ts";
import type { SlackSend } from "./slack.ts";

export type AnyChannel = Channel | ProgramChannel;
/** Every way out. */
export const ALL_CHANNELS: readonly AnyChannel[] = [...CHANNELS, ...PROGRAM_CHANNELS];

/** Does a person read what comes this way? */
export function isForPeople(channel: AnyChannel): channel is Channel {
  return CHANNELS.some((known) => known === channel);
}

/** The senders that are configured; `null` or missing: none, so the messages go to the log. */
export interface Senders {
  readonly slack: SlackSend | null;
  readonly slackCritical: SlackSend | null;
  readonly webhook?: ProgramSend | null;
  readonly pagerDuty?: ProgramSend | null;
}

export interface Way {
  /** `null`: the log. */
  readonly send: ((message: ClaimedMessage, payload: Payload) => Promise<SendOutcome>) | null;
  /** Milliseconds between two messages. */
  readonly paceMs: number;
  /**
   * A program listens: each message counts by itself, those of one incident come in their order,
   * and a repeat does no harm, since it carries the same id. People get digests instead.
   */
  readonly forProgram: boolean;
}

// Slack's rate for incoming webhooks: one message a second.
const SLACK_PACE_MS = 1_000;
// Ten a second bother no program that takes webhooks at all.
const WEBHOOK_PACE_MS = 100;
// PagerDuty takes 120 events a minute for one key; half of it leaves room for other senders.
const PAGERDUTY_PACE_MS = 1_000;

/** The way out of a channel. */
export function wayOf(senders: Senders, channel: AnyChannel): Way {
  switch (channel) {
    case "slack":
      return slackWay(senders.slack);
    case "slack_critical":
      return slackWay(senders.slackCritical);
    case "webhook":
      return programWay(senders.webhook ?? null, WEBHOOK_PACE_MS);
    case "pagerduty":
      return programWay(senders.pagerDuty ?? null, PAGERDUTY_PACE_MS);
    case "log":
      return { send: null, paceMs: 0, forProgram: false };
  }
}

function slackWay(send: SlackSend | null): Way {
  if (send === null) return { send, paceMs: 0, forProgram: false };
  return {
    send: async (_message, payload) => {
      const text = toSlackText(payload.text);
      const outcome = await send({ text, blocks: payload.blocks });
      // Words without a form are better than no words.
      return outcome.kind === "refused" ? send({ text }) : outcome;
    },
    paceMs: SLACK_PACE_MS,
    forProgram: false,
  };
}

function programWay(send: ProgramSend | null, paceMs: number): Way {
  if (send === null) return { send, paceMs: 0, forProgram: true };
  return {
    send: ({ messageId, createdAt }, { event }) => {
      if (event === undefined) throw new BugError("a message for a program has no event");
      return send({ messageId, createdAt, event });
    },
    paceMs,
    forProgram: true,
  };
}
