import { createHmac } from "node:crypto";

/**
 * The `Stripe-Signature` header: `t=<seconds>,v1=<hex>`, one v1 per secret while a secret is being
 * rolled; v1 is HMAC-SHA256 of `t.body` (Stripe, "Verify webhook signatures manually").
 */
export function signatureHeader(body: string, secrets: readonly string[], seconds: number): string {
  const stamp = String(seconds);
  const signatures = secrets.map((secret) => {
    const hex = createHmac("sha256", secret).update(`${stamp}.${body}`, "utf8").digest("hex");
    return `v1=${hex}`;
  });
  return [`t=${stamp}`, ...signatures].join(",");
}
