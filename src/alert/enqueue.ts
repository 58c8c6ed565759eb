import type { PoolClient } from "pg";

import { addMs } from "../core/clock.ts";
import { enqueue, lockWaiting, newestOf, replacePayload } from "../store/outbox.ts";
import { dropOutdated } from "../store/outbox-merge.ts";
import type { NewMessage } from "../store/outbox.ts";
import type { Digest, DigestItem } from "./digest.ts";
import { digestDocument, digestItem, digestOf, mergeDigests } from "./digest.ts";
import { incidentDocument } from "./message.ts";
import { payloadOf, readPayload } from "./payload.ts";
import type { Tell } from "./route.ts";
import { CHANNELS, isOver } from "./route.ts";

// A further digest, or a further worsening, of the same minute waits for the end of it and takes up
// what comes meanwhile: one message a minute says as much as sixty.
const COMPANY_WAIT_MS = 60_000;
// What a known fault goes on causing is worth four messages an hour; a critical that hides in it
// waits no longer than that.
const FLOOD_WAIT_MS = 900_000;

export interface TellOptions {
  readonly now: Date;
  readonly publicUrl: string | null;
  /** Do messages about one incident carry buttons? */
  readonly buttons?: boolean;
}

/** Puts what is to be told into the outbox, inside the transaction of the incidents. */
export async function enqueueTells(
  tx: PoolClient,
  tells: readonly Tell[],
  options: TellOptions,
): Promise<void> {
  for (const tell of tells) {
    if (tell.kind === "single") await enqueueSingle(tx, tell, options);
    else await enqueueDigest(tx, tell, { now: options.now, payload: digestPayload });
  }
}

async function enqueueSingle(
  tx: PoolClient,
  tell: Extract<Tell, { kind: "single" }>,
  options: TellOptions,
): Promise<void> {
  const { channel, severity, step, word, patient } = tell;
  const item = digestItem(step.after, { first: word === "opened", over: isOver(word) });
  const payload = { ...payloadOf(incidentDocument(step, word, options), { item }) };
  const about = { channel, kind: word, incidentId: step.after.id };
  const waiting = patient ? await lockWaiting(tx, about) : null;
  if (waiting !== null) {
    await replacePayload(tx, { messageId: waiting.messageId, severity, payload });
    return;
  }
  const dueAt = patient ? addMs(options.now, COMPANY_WAIT_MS) : options.now;
  await enqueueNewest(tx, { ...about, severity, payload, createdAt: options.now, dueAt });
}

/** Adds a message for people about one incident, in the place of older ones that still wait. */
export async function enqueueNewest(
  tx: PoolClient,
  message: NewMessage & { readonly incidentId: string },
): Promise<void> {
  const { channel, incidentId, createdAt: now } = message;
  const into = await enqueue(tx, message);
  await dropOutdated(tx, { channel, incidentIds: [incidentId], into, now });
}

/** Puts a digest into the outbox, or adds it to one that waits; `payload` gives its words. */
export async function enqueueDigest(
  tx: PoolClient,
  tell: Omit<Extract<Tell, { kind: "digest" }>, "kind" | "channel"> & { readonly channel: string },
  options: {
    readonly now: Date;
    readonly payload: (digest: Digest) => Readonly<Record<string, unknown>>;
  },
): Promise<void> {
  const { now } = options;
  const { channel, severity, digest: kind, items } = tell;
  const digest = digestOf(kind, items);
  const about = { channel, kind, incidentId: null };
  const waiting = await lockWaiting(tx, about);
  if (waiting !== null) {
    const earlier = readPayload(waiting.payload).digest;
    const merged = earlier === undefined ? digest : mergeDigests(earlier, digest);
    const payload = options.payload(merged);
    const worst = merged.criticals > 0 ? "critical" : severity;
    await replacePayload(tx, { messageId: waiting.messageId, severity: worst, payload });
    await dropTold(tx, tell, waiting.messageId, now);
    return;
  }
  const since = addMs(now, -COMPANY_WAIT_MS);
  const newest = await newestOf(tx, { channel, kind, since });
  const companyAt = newest === null ? now : addMs(newest, COMPANY_WAIT_MS);
  const dueAt = kind === "flood" ? addMs(now, FLOOD_WAIT_MS) : companyAt;
  const payload = options.payload(digest);
  const id = await enqueue(tx, { ...about, severity, payload, createdAt: now, dueAt });
  await dropTold(tx, tell, id, now);
}

/** To programs each word counts, and comes in its order. */
async function dropTold(
  tx: PoolClient,
  { channel, items }: { readonly channel: string; readonly items: readonly DigestItem[] },
  into: bigint,
  now: Date,
): Promise<void> {
  if (!CHANNELS.some((known) => known === channel)) return;
  const incidentIds = items.map((item) => item.id);
  await dropOutdated(tx, { channel, incidentIds, into, now });
}

/** The payload of a digest. */
export function digestPayload(digest: Digest): Readonly<Record<string, unknown>> {
  return { ...payloadOf(digestDocument(digest), { digest }) };
}
