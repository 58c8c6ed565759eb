import { createHmac, timingSafeEqual } from "node:crypto";

// Slack's own advice ("Verifying requests from Slack"): older requests may be replays. A time ahead
// of ours by more is no request of Slack's either.
const WINDOW_SECONDS = 300;
const SECOND_MS = 1_000;
const VERSION = "v0";

/** Did Slack sign these bytes, just now? How long the answer takes tells nothing. */
export function slackSigned(
  request: {
    readonly rawBody: Buffer;
    readonly timestamp: string | undefined;
    readonly signature: string | undefined;
    readonly receivedAt: Date;
  },
  signingSecret: string,
): boolean {
  const { rawBody, timestamp = "", signature = "", receivedAt } = request;
  const wanted = createHmac("sha256", signingSecret)
    .update(`${VERSION}:${timestamp}:`, "utf8")
    .update(rawBody)
    .digest();
  const hex = /^v0=([0-9a-f]{64})$/.exec(signature)?.[1] ?? "";
  const given = Buffer.from(hex.padEnd(2 * wanted.length, "0"), "hex");
  const isSame = timingSafeEqual(given, wanted) && hex !== "";
  const isTime = /^\d{1,12}$/.test(timestamp);
  const apart = Math.abs(receivedAt.getTime() / SECOND_MS - Number(timestamp));
  return isSame && isTime && apart <= WINDOW_SECONDS;
}
