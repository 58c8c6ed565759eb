/** Tells people what one of them did, in the transaction of the incident. */
import type { PoolClient } from "pg";

import type { PersonStep } from "../alert/act-document.ts";
import { actDocument } from "../alert/act-document.ts";
import { digestItem } from "../alert/digest.ts";
import { digestPayload, enqueueDigest, enqueueNewest } from "../alert/enqueue.ts";
import { payloadOf } from "../alert/payload.ts";
import { CAP_WINDOW_MS, SINGLES_PER_MINUTE_MAX, channelFor } from "../alert/route.ts";
import { addMs } from "../core/clock.ts";
import type { Incident } from "../core/incident.ts";
import { singlesSince } from "../store/outbox.ts";
import { hooksOf } from "./hooks-of.ts";

/** What the settings say about people. */
export type PeopleSettings = Parameters<typeof hooksOf>[0];

/**
 * Whoever heard of a critical incident hears that somebody has taken it on, quieted or closed it:
 * two people must not work on it, and a silence must not look like an end by facts.
 */
export async function tellPeopleOfAct(
  tx: PoolClient,
  settings: PeopleSettings,
  act: {
    readonly after: Incident;
    readonly step: PersonStep;
    readonly actor: string;
    readonly note: string | null;
    readonly now: Date;
  },
): Promise<void> {
  const { after, step, now } = act;
  if (after.severity !== "critical" || after.told === null) return;
  const channel = channelFor(hooksOf(settings), after, "critical");
  const item = digestItem(after, { first: false, over: step === "closed" });
  const singles = await singlesSince(tx, addMs(now, -CAP_WINDOW_MS));
  const spent = singles.find((one) => one.channel === channel)?.count ?? 0;
  if (spent >= SINGLES_PER_MINUTE_MAX) {
    // A script that acts on hundreds: what it closes is one message, the rest is in the list.
    if (step !== "closed") return;
    const tell = { channel, digest: "over", severity: "info", items: [item] } as const;
    await enqueueDigest(tx, tell, { now, payload: digestPayload });
    return;
  }
  await enqueueNewest(tx, {
    ...{ incidentId: after.id, channel, kind: "by_person", severity: "info" },
    payload: { ...payloadOf(actDocument(after, act), { item }) },
    ...{ createdAt: now, dueAt: now },
  });
}
