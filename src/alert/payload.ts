import { BugError } from "../core/errors.ts";
import type { Digest, DigestItem } from "./digest.ts";
import type { Document, SlackBlock } from "./document.ts";
import { toBlocks, toPlainText } from "./document.ts";
import type { SendOutcome } from "./send-outcome.ts";

/** What the outbox keeps of a message: ready to send, and small enough to be put into a digest. */
export interface Payload {
  /** Plain text, not escaped. */
  readonly text: string;
  readonly blocks: readonly SlackBlock[];
  /** Of a single alert. */
  readonly item?: DigestItem;
  /** Of a digest. */
  readonly digest?: Digest;
  /** For a program: what is sent to it, in the words of that way out. */
  readonly event?: Readonly<Record<string, unknown>>;
}

/** A message for a program, as its sender gets it. */
export interface ProgramMessage {
  readonly messageId: bigint;
  readonly createdAt: Date;
  readonly event: Readonly<Record<string, unknown>>;
}

/** Sends one message to a program; never throws for what the other side or the network does. */
export type ProgramSend = (message: ProgramMessage) => Promise<SendOutcome>;

/** The payload of a document, with what a digest needs of it. */
export function payloadOf(
  document: Document,
  content: Pick<Payload, "item" | "digest"> = {},
): Payload {
  return { text: toPlainText(document), blocks: toBlocks(document), ...content };
}

/** A payload as it comes back from the outbox. Throws `BugError` when it is none of ours. */
export function readPayload(value: unknown): Payload {
  if (isPayload(value)) return value;
  throw new BugError("a message in tallyd.outbox has no text and blocks");
}

function isPayload(value: unknown): value is Payload {
  if (typeof value !== "object" || value === null) return false;
  return (
    "text" in value &&
    typeof value.text === "string" &&
    "blocks" in value &&
    Array.isArray(value.blocks)
  );
}
