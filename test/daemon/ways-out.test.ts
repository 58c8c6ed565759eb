/**
 * Goal: with every way out configured, one double charge is told on each, and a click in Slack
 * reaches the others. Method: the daemon as a whole, stand-ins at the end of each way.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { doctor } from "../../src/cli/commands/doctor.ts";
import type { CommandContext } from "../../src/cli/command.ts";
import { systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/log.ts";
import { startDaemon } from "../../src/daemon/run.ts";
import type { Daemon } from "../../src/daemon/run.ts";
import { startPagerDutySandbox } from "../../src/sandbox/pagerduty/server.ts";
import type { PagerDutySandbox } from "../../src/sandbox/pagerduty/server.ts";
import { click } from "../../src/sandbox/slack/interactions.ts";
import { startWebhookSandbox } from "../../src/sandbox/webhook/server.ts";
import type { WebhookSandbox } from "../../src/sandbox/webhook/server.ts";
import { openStage } from "./stage.ts";
import type { TestStage } from "./stage.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const KEY = "0123456789abcdef0123456789abcdef";
const SIGNING_SECRET = "8f742231b10e8888abcd99aa00bb85a5";

let stage: TestStage;
let hook: WebhookSandbox;
let pager: PagerDutySandbox;
beforeEach(async () => {
  hook = await startWebhookSandbox({ secret: SECRET });
  pager = await startPagerDutySandbox(KEY);
  stage = await openStage({
    LOCAL_BEAT: "1s",
    SLACK_SIGNING_SECRET: SIGNING_SECRET,
    WEBHOOK_URL: hook.webhookUrl,
    WEBHOOK_SECRET: SECRET,
    PAGERDUTY_ROUTING_KEY: KEY,
    PAGERDUTY_API_BASE: pager.url,
  });
});
afterEach(async () => {
  await stage.close();
  await pager.close();
  await hook.close();
});

describe("all ways out", () => {
  let daemon: Daemon;
  beforeEach(async () => {
    const tallyd = await stage.open();
    daemon = await startDaemon(tallyd, { version: "0.0.0", routers: [], say: () => {} });
  });
  afterEach(async () => {
    await daemon.stop();
  });

  it("default: told on each once; acknowledged in Slack is acknowledged everywhere", async () => {
    await stage.row({ id: "twice", state: "recorded", charge: "pi_one", secondsAgo: 900 });
    stage.pay("twice", { id: "pi_one", secondsAgo: 890 });
    stage.pay("twice", { id: "pi_two", secondsAgo: 800 });
    const soon = { timeout: 20_000, interval: 50 };
    await expect.poll(() => stage.slack.control.messages.length, soon).toBe(1);
    await expect.poll(() => hook.deliveries.length, soon).toBe(1);
    await expect
      .poll(() => [...pager.alerts.values()].map(({ status }) => status), soon)
      .toEqual(["triggered"]);
    const [id = ""] = pager.alerts.keys();
    const [message] = stage.slack.control.messages;
    const clicked = await click({
      to: `http://127.0.0.1:${String(daemon.port)}/slack/actions`,
      ...{ signingSecret: SIGNING_SECRET, userId: "U1", actionId: "tallyd_ack_double", value: id },
      ...{ blocks: message?.blocks ?? [], now: Date.now() },
      responseUrl: `${stage.slack.url}${stage.slack.responses.issue()}`,
    });
    expect(clicked).toBe(200);
    await expect.poll(() => stage.slack.responses.taken.length, soon).toBe(1);
    await expect.poll(() => pager.alerts.get(id)?.status, soon).toBe("acknowledged");
    await expect
      .poll(() => hook.deliveries.at(-1)?.body, soon)
      .toMatchObject({
        type: "incident.acknowledged",
        data: { actor: "slack:U1", incident: { id, status: "acknowledged" } },
      });
    expect((await daemon.readiness()).checks.find(({ name }) => name === "alerts")?.ok).toBe(true);
  });
});

describe("doctor --send-test", () => {
  async function names(): Promise<string[]> {
    const nothing = (): void => undefined;
    const context: CommandContext = {
      ...{ args: [], flags: { "send-test": true }, json: true, clock: systemClock },
      ...{ log: { ...silentLog, configure: nothing }, signal: new AbortController().signal },
      output: { stdout: nothing, stderr: nothing, terminal: false },
      progress: { show: nothing, finish: nothing },
      settings: () => Promise.resolve(stage.settings),
    };
    const { json } = await doctor.run(context);
    const { checks } = json as { checks: { name: string; status: string; seen: string }[] };
    return checks
      .filter(({ name }) => name.endsWith(" test"))
      .map((one) => `${one.name} ${one.status}`);
  }

  it("default: each way is tried, and nobody is paged", async () => {
    expect(await names()).toEqual([
      ...["SLACK_WEBHOOK_URL test ok", "WEBHOOK_URL test ok", "PAGERDUTY_ROUTING_KEY test ok"],
    ]);
    expect(hook.deliveries.map(({ body }) => body)).toMatchObject([{ type: "test" }]);
    expect(pager.control.requests.map(({ status }) => status)).toEqual([202]);
    expect(pager.alerts.size).toBe(0);
  });

  it("error: a key that PagerDuty refuses is a fault", async () => {
    pager.routingKeys.clear();
    expect(await names()).toContain("PAGERDUTY_ROUTING_KEY test fault");
  });
});
