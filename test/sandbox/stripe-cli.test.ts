// Goal: the official command-line client works against the sandbox. Method: its own binary.
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { withSandbox, WRITE_KEY } from "./stripe-support.ts";

const run = promisify(execFile);
const BINARY = join(import.meta.dirname, "../../node_modules/.bin/stripe");
/** One run of the client with several triggers; it also asks for new versions, offline in vain. */
const TIMEOUT_MS = 60_000;

async function withClient(
  use: (stripe: (...args: string[]) => Promise<string>, home: string, url: string) => Promise<void>,
  url: string,
): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), "stripe-cli-"));
  const env = {
    ...process.env,
    HOME: home,
    XDG_CONFIG_HOME: home,
    STRIPE_CLI_TELEMETRY_OPTOUT: "1",
  };
  const stripe = async (...args: string[]): Promise<string> => {
    const all = [...args, "--api-base", url, "--api-key", WRITE_KEY];
    const { stdout, stderr } = await run(BINARY, all, { env, timeout: TIMEOUT_MS });
    return stdout + stderr;
  };
  try {
    await use(stripe, home, url);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

const TRIGGERS: readonly (readonly [string, string])[] = [
  ["payment_intent.succeeded", "payment_intent.succeeded"],
  ["payment_intent.payment_failed", "payment_intent.payment_failed"],
  ["payment_intent.created", "payment_intent.created"],
  ["payment_intent.canceled", "payment_intent.canceled"],
  ["payment_intent.amount_capturable_updated", "payment_intent.amount_capturable_updated"],
  ["payment_intent.processing", "payment_intent.processing"],
  ["payment_intent.requires_action", "payment_intent.requires_action"],
  ["payment_intent.partially_funded", "payment_intent.partially_funded"],
  ["charge.succeeded", "charge.succeeded"],
  ["charge.failed", "charge.failed"],
  ["charge.captured", "charge.captured"],
  ["charge.refunded", "charge.refunded"],
  ["charge.refund.updated", "charge.refund.updated"],
  ["charge.dispute.created", "charge.dispute.created"],
  ["charge.dispute.updated", "charge.dispute.updated"],
  ["charge.dispute.closed", "charge.dispute.closed"],
];

test("default: every payment trigger makes its event", { timeout: TIMEOUT_MS }, async () => {
  await withSandbox({}, async ({ url, control }) => {
    await withClient(async (stripe) => {
      for (const [trigger, type] of TRIGGERS) {
        await stripe("trigger", trigger);
        expect(control.events().map((event) => event.type)).toContain(type);
      }
    }, url);
  });
});

test(
  "behavior: a fixture file runs, with references between its steps",
  { timeout: TIMEOUT_MS },
  async () => {
    await withSandbox({}, async ({ url, control }) => {
      await withClient(async (stripe, home) => {
        const file = join(home, "fixture.json");
        const steps = {
          _meta: { template_version: 0 },
          fixtures: [
            {
              name: "payment",
              path: "/v1/payment_intents",
              method: "post",
              params: {
                amount: 4_200,
                currency: "eur",
                confirm: true,
                payment_method: "pm_card_visa",
                metadata: { order: "order-7" },
              },
            },
            {
              name: "refund",
              path: "/v1/refunds",
              method: "post",
              params: { payment_intent: "${payment:id}", amount: 200 },
            },
          ],
        };
        await writeFile(file, JSON.stringify(steps));
        await stripe("fixtures", file);
        const refund = control.events().find((event) => event.type === "refund.created");
        expect(refund?.snapshot).toMatchObject({ record: { amount: 200n, currency: "eur" } });
      }, url);
    });
  },
);
