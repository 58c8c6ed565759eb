/**
 * Goal: what the official command-line client makes goes through the running receiver and is told
 * by
 * `explain`. Method: `stripe trigger` against the stand-in, whose webhooks go to the public port.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";

import { afterAll, beforeAll, expect, it } from "vitest";

import { startReceiver } from "./receiver.ts";
import { openE2e, WEBHOOK_SECRET } from "./world.ts";
import type { E2e } from "./world.ts";

const BINARY = path.join(import.meta.dirname, "../../node_modules/.bin/stripe");
// The client also asks for new versions of itself, offline in vain.
const TIMEOUT_MS = 60_000;
const run = promisify(execFile);

let world: E2e;
let home: string;
beforeAll(async () => {
  world = await openE2e();
  home = await mkdtemp(path.join(tmpdir(), "stripe-cli-"));
});
afterAll(async () => {
  await world.close();
  await rm(home, { recursive: true, force: true });
});

async function trigger(name: string): Promise<void> {
  const where = ["--api-base", world.stripe.url, "--api-key", "sk_test_0123456789abcdef"];
  const config = { HOME: home, XDG_CONFIG_HOME: home, STRIPE_CLI_TELEMETRY_OPTOUT: "1" };
  const env = { PATH: process.env["PATH"], ...config };
  await run(BINARY, ["trigger", name, ...where], { env, timeout: TIMEOUT_MS });
}

it(
  "default: triggered payments are received, told and judged",
  { timeout: TIMEOUT_MS },
  async () => {
    await world.fresh("seed", { STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET });
    world.env["STRIPE_API_KEY"] = undefined;
    const receiver = await startReceiver(world);
    const { control } = world.stripe;
    control.addEndpoint({ url: receiver.url, secrets: [WEBHOOK_SECRET] });
    await trigger("payment_intent.succeeded");
    await trigger("charge.dispute.created");
    await control.idle();
    await receiver.close();
    expect(control.deliveries().length).toBeGreaterThan(4);
    expect(control.deliveries().filter((one) => one.status !== 200)).toEqual([]);
    const found = await world.once();
    expect(found.exitCode).not.toBe(1);
    const ids = new Set(
      control
        .events()
        .filter((one) => one.type === "charge.succeeded")
        .map((one) => (one.snapshot.kind === "record" ? one.snapshot.record.id : "")),
    );
    expect(ids.size).toBe(2);
    for (const id of ids) {
      const explained = await world.run("explain", id);
      expect(explained.exitCode).toBe(0);
      const known: unknown = expect.arrayContaining([expect.objectContaining({ id })]);
      expect(explained.json).toMatchObject({ charges: known });
    }
    // The payments are seconds old, so nothing is an orphan or told of yet.
    expect(found.open).toEqual([]);
    const disputed = control
      .events()
      .find((one) => one.type === "charge.dispute.created")?.snapshot;
    const dispute = disputed?.kind === "record" ? disputed.record.id : "";
    const told = await world.run("explain", dispute);
    expect(told.json).toMatchObject({ disputes: [{ id: dispute }] });
  },
);
