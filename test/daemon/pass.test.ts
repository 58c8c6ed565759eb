/** Goal: one complete pass finds, resolves and tells; and says what it could not read. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/log.ts";
import { onePass } from "../../src/daemon/pass.ts";
import type { PassReport } from "../../src/daemon/pass.ts";
import { openTallyd } from "../../src/daemon/tallyd.ts";
import { startReceiver } from "../../src/sandbox/receiver.ts";
import { openStage } from "./stage.ts";
import type { TestStage } from "./stage.ts";

let stage: TestStage;
beforeEach(async () => {
  stage = await openStage();
});
afterEach(async () => {
  await stage.close();
});

async function pass(): Promise<PassReport> {
  const tallyd = await stage.open();
  try {
    return await onePass(tallyd, { full: true, signal: new AbortController().signal });
  } finally {
    await tallyd.close();
  }
}

async function openCodes(): Promise<string[]> {
  const found = await stage.pool.query<{ code: string }>(
    "select code from tallyd.incident where status = 'open' order by code",
  );
  return found.rows.map((row) => row.code);
}

// Another amount: the stand-in pays all with one card, and alike payments are suspected.
const OTHER = { amount: 3_100, secondsAgo: 890 };

describe("onePass", () => {
  it("default: a double charge is found and told once, an honest payment is not", async () => {
    await stage.row({ id: "honest", state: "recorded", charge: "pi_honest", ...OTHER });
    stage.pay("honest", { id: "pi_honest", ...OTHER });
    await stage.row({ id: "twice", state: "recorded", charge: "pi_one", secondsAgo: 900 });
    stage.pay("twice", { id: "pi_one", secondsAgo: 890 });
    stage.pay("twice", { id: "pi_two", secondsAgo: 800 });
    const first = await pass();
    expect(first.failures).toEqual([]);
    expect(await openCodes()).toEqual(["double_charge"]);
    expect(stage.slack.control.messages).toHaveLength(1);
    const second = await pass();
    expect(second.failures).toEqual([]);
    expect(await openCodes()).toEqual(["double_charge"]);
    expect(stage.slack.control.messages).toHaveLength(1);
  });

  it("behavior: an ambiguous intent is resolved at once and leaves nothing open", async () => {
    await stage.row({ id: "lost", state: "reconciling", secondsAgo: 1_200 });
    stage.pay("lost", { id: "pi_lost", secondsAgo: 1_190 });
    const report = await pass();
    expect(report.failures).toEqual([]);
    const found = await stage.pool.query<{ state: string; charge_id: string }>(
      "select state, charge_id from public.payment_intents",
    );
    expect(found.rows[0]).toMatchObject({ state: "recorded" });
    expect(found.rows[0]?.charge_id).toMatch(/^(pi|ch|py)_/);
    expect(await openCodes()).toEqual([]);
  });

  it("error: Stripe out of reach is a failure per source, and the team's table is still read", async () => {
    await stage.row({ id: "i1", state: "recorded", charge: "pi_x", secondsAgo: 60 });
    const body = { error: { type: "invalid_request_error", message: "Invalid API Key provided" } };
    stage.stripe.control.fault({ kind: "respond", status: 401, body });
    const report = await pass();
    expect(report.steps["local"]?.["changed"]).toBe(1);
    expect(report.failures.map(({ source }) => source)).toContain("stripe.events");
  });

  it("error: a team's table out of reach is a failure, and Stripe is still read", async () => {
    stage.pay("nobody", { secondsAgo: 600 });
    const tallyd = await stage.open();
    await tallyd.local.shape();
    await stage.pool.query("alter table public.payment_intents rename to gone");
    const report = await onePass(tallyd, { full: true, signal: new AbortController().signal });
    await tallyd.close();
    expect(report.failures.map(({ source }) => source)).toContain("local");
    expect(report.steps["lists"]?.["objects"]).toBeGreaterThan(0);
    // Nothing may be called an orphan while the table cannot be looked at.
    expect(await openCodes()).not.toContain("orphan_charge");
  });

  it("error: a dead Slack hook is a failure and an incident", async () => {
    await stage.row({ id: "twice", state: "recorded", charge: "pi_one", secondsAgo: 900 });
    stage.pay("twice", { id: "pi_one", secondsAgo: 890 });
    stage.pay("twice", { id: "pi_two", secondsAgo: 800 });
    stage.slack.control.mode = "no_service_404";
    const report = await pass();
    expect(report.failures.map(({ source }) => source)).toContain("alerts");
    expect(await openCodes()).toEqual(["config_error", "double_charge"]);
  });

  it("error: a dead webhook is a failure and an incident, told in Slack, until it is gone", async () => {
    const receiver = await startReceiver(() => ({ status: 410, body: "gone" }));
    await stage.row({ id: "twice", state: "recorded", charge: "pi_one", secondsAgo: 900 });
    stage.pay("twice", { id: "pi_one", secondsAgo: 890 });
    stage.pay("twice", { id: "pi_two", secondsAgo: 800 });
    const secrets = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"];
    const settings = { ...stage.settings, webhook: { url: receiver.url, secrets } };
    const passWith = async (): Promise<string[]> => {
      const tallyd = await openTallyd(settings, { log: silentLog, clock: systemClock });
      const report = await onePass(tallyd, { full: true, signal: new AbortController().signal });
      await tallyd.close();
      return report.failures.map(({ scope }) => scope);
    };
    expect(await passWith()).toEqual(["webhook"]);
    expect(await openCodes()).toEqual(["config_error", "double_charge"]);
    // Still so at the next pass.
    expect(await passWith()).toEqual(["webhook"]);
    const texts = stage.slack.control.messages.map(({ text }) => text ?? "");
    expect(texts.filter((text) => text.includes("WEBHOOK_URL"))).toHaveLength(1);
    await receiver.close();
    expect((await pass()).failures).toEqual([]);
  });
});
