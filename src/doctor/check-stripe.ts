import { UnreadableError } from "../core/errors.ts";
import { messageOf } from "../core/message.ts";
import { stripeScope } from "../core/scope.ts";
import type { Settings } from "../core/settings.ts";
import type { ListResource, StripeReader } from "../sources/stripe/client.ts";
import type { Check } from "./check.ts";
import { fine, told, unreadable } from "./check.ts";

/** The part of the Stripe client that is asked; a handful of reads. */
export type StripeProbe = Pick<StripeReader, "account" | "list" | "clockAheadMs">;

const RESOURCES: readonly ListResource[] = [
  "payment_intents",
  "charges",
  "refunds",
  "disputes",
  "events",
];

/** The key: there, of which kind, of the right mode, and what it may read. */
export async function checkStripe(settings: Settings, probe: StripeProbe | null): Promise<Check[]> {
  const { apiKey, livemode, accounts } = settings.stripe;
  if (apiKey === null || probe === null) {
    return [
      told("Stripe key", "warning", {
        seen: "STRIPE_API_KEY is not set",
        meaning:
          "only webhooks are seen: nothing that they miss is found, and absence is not proven",
        advice: "make a restricted key with Read on charges, payment intents, events, disputes",
      }),
    ];
  }
  const checks = [kindOfKey(apiKey, livemode)];
  try {
    const account = await probe.account();
    checks.push(
      fine("Stripe account", typeof account["id"] === "string" ? account["id"] : "found"),
    );
  } catch (error) {
    // A restricted key may read payments and not the account itself: the lists decide.
    const seen = refusal(error);
    const meaning = "the account's name is not shown";
    checks.push(told("Stripe account", "remark", { seen, meaning, advice: "" }));
  }
  const scopes = [null, ...accounts].map((account) => stripeScope(account, livemode));
  for (const scope of scopes) checks.push(await checkLists(probe, scope));
  return checks;
}

function kindOfKey(apiKey: string, livemode: boolean): Check {
  const mode = `${livemode ? "live" : "test"} mode`;
  const page = `https://dashboard.stripe.com/${livemode ? "" : "test/"}apikeys`;
  if (apiKey.startsWith("rk_")) {
    // No remark of this kind can turn "ok": Stripe shows a key's rights to people alone, and to
    // try a write is what tallyd never does (invariant 1).
    return told("Stripe key", "remark", {
      seen: `restricted key (rk_…), ${mode}; whether it may write cannot be seen from here`,
      meaning:
        "what it may read is tried below; a right to write shows only when something is written, " +
        "and tallyd never tries",
      advice:
        `look at the key under "Restricted keys" on ${page} (Developers, API keys): ` +
        "Read on what is named below, Write on nothing",
    });
  }
  return told("Stripe key", "warning", {
    seen: `secret key (sk_…), ${mode}: it can create charges and refunds`,
    meaning: "tallyd only reads, but whoever gets hold of this key can move money",
    advice: `make a restricted key (rk_…) with Read rights alone on ${page}, and use that`,
  });
}

async function checkLists(probe: StripeProbe, scope: string): Promise<Check> {
  const name = `Stripe lists of ${scope}`;
  const readable: string[] = [];
  const refused: string[] = [];
  for (const resource of RESOURCES) {
    try {
      await probe.list(scope, resource, { limit: 1 });
      readable.push(resource);
    } catch (error) {
      refused.push(`${resource}: ${refusal(error)}`);
    }
  }
  if (refused.length === 0) return fine(name, `${readable.join(", ")} can be read`);
  const advice = "give the key Read on each of them, and check STRIPE_API_BASE and the network";
  const parts = [
    ...refused,
    `can be read: ${readable.length === 0 ? "none" : readable.join(", ")}`,
  ];
  return unreadable(name, new Error(parts.join("; ")), advice);
}

/** Stripe names the permission that a restricted key lacks, such as `rak_charge_read`. */
function refusal(error: unknown): string {
  const said = messageOf(error);
  if (!(error instanceof UnreadableError) || error.code !== "permission") return said;
  const lacking = [...new Set(said.match(/\brak_\w+/g) ?? [])];
  if (lacking.length === 0) return said;
  return `the key lacks the permission ${lacking.join(", ")} (HTTP 403)`;
}

/** Without a secret no webhook can be believed. */
export function checkWebhookSecret(settings: Settings): Check {
  const { webhookSecrets } = settings.stripe;
  if (webhookSecrets.length > 0) {
    return fine("webhook secret", `${String(webhookSecrets.length)} set`);
  }
  return told("webhook secret", "warning", {
    seen: "STRIPE_WEBHOOK_SECRET is not set",
    meaning: "webhooks are refused; changes are seen with the slow beats of the lists alone",
    advice: "add an endpoint at Stripe that points to /webhooks/stripe and set its whsec_ secret",
  });
}
