// Goal: the Slack stand-in takes and refuses what Slack does. Method: plain requests, real HTTP.
import { IncomingWebhook } from "@slack/webhook";
import { expect, test } from "vitest";
import { startSlackSandbox } from "../../src/sandbox/slack/server.ts";
import type { SlackSandbox, SlackSandboxOptions } from "../../src/sandbox/slack/server.ts";

async function withSlack(
  options: SlackSandboxOptions,
  run: (slack: SlackSandbox) => Promise<void>,
): Promise<void> {
  const slack = await startSlackSandbox(options);
  try {
    await run(slack);
  } finally {
    await slack.close();
  }
}

async function post(slack: SlackSandbox, payload: unknown): Promise<string> {
  const body = typeof payload === "string" ? payload : JSON.stringify(payload);
  const response = await fetch(slack.webhookUrl, { method: "POST", body });
  return `${String(response.status)} ${await response.text()}`;
}

function section(length: number): object {
  return { type: "section", text: { type: "mrkdwn", text: "x".repeat(length) } };
}

test("default: the official client posts a message", async () => {
  await withSlack({}, async (slack) => {
    const sent = await new IncomingWebhook(slack.webhookUrl).send({
      text: "hello",
      blocks: [{ type: "header", text: { type: "plain_text", text: "Double charge" } }],
    });
    expect(sent.text).toBe("ok");
    expect(slack.control.messages[0]).toMatchObject({
      text: "hello",
      blocks: [{ type: "header" }],
    });
  });
});

test("error: bodies that say nothing are refused", async () => {
  await withSlack({}, async (slack) => {
    expect(await post(slack, "not json")).toBe("400 invalid_payload");
    expect(await post(slack, {})).toBe("400 no_text");
    expect(await post(slack, { text: "" })).toBe("400 no_text");
    expect(slack.control.messages).toHaveLength(0);
  });
});

test("error: blocks past Slack's limits are refused, at the limits they are taken", async () => {
  await withSlack({}, async (slack) => {
    const plain = (length: number): object => ({ type: "plain_text", text: "x".repeat(length) });
    const field = { type: "mrkdwn", text: "f" };
    const button = (text: number, url: number): object => ({
      type: "actions",
      elements: [{ type: "button", text: plain(text), url: "u".repeat(url) }],
    });
    const cases: readonly (readonly [object[], string])[] = [
      [Array.from({ length: 50 }, () => section(1)), "200 ok"],
      [Array.from({ length: 51 }, () => section(1)), "400 invalid_blocks"],
      [[section(3_000)], "200 ok"],
      [[section(3_001)], "400 invalid_blocks"],
      [[section(0)], "400 invalid_blocks"],
      [[{ type: "header", text: plain(150) }], "200 ok"],
      [[{ type: "header", text: plain(151) }], "400 invalid_blocks"],
      [[{ type: "header", text: field }], "400 invalid_blocks"],
      [[{ type: "section", fields: Array.from({ length: 10 }, () => field) }], "200 ok"],
      [
        [{ type: "section", fields: Array.from({ length: 11 }, () => field) }],
        "400 invalid_blocks",
      ],
      [
        [{ type: "section", fields: [{ type: "mrkdwn", text: "x".repeat(2_001) }] }],
        "400 invalid_blocks",
      ],
      [[button(75, 3_000)], "200 ok"],
      [[button(76, 10)], "400 invalid_blocks"],
      [[button(10, 3_001)], "400 invalid_blocks"],
      [[{ type: "poem" }], "400 invalid_blocks"],
    ];
    for (const [blocks, answer] of cases) expect(await post(slack, { blocks })).toBe(answer);
  });
});

test("behavior: more than a message a second is limited, with the time to wait", async () => {
  let now = 0;
  await withSlack({ limited: true, now: () => now }, async (slack) => {
    expect(await post(slack, { text: "one" })).toBe("200 ok");
    const limited = await fetch(slack.webhookUrl, { method: "POST", body: `{"text":"two"}` });
    expect([limited.status, limited.headers.get("retry-after")]).toEqual([429, "1"]);
    now += 1_000;
    expect(await post(slack, { text: "two" })).toBe("200 ok");
  });
});

test("error: every mode answers in its way and says whether the message stands", async () => {
  await withSlack({}, async (slack) => {
    const { control } = slack;
    control.mode = "error_500";
    expect(await post(slack, { text: "a" })).toBe("500 internal_error");
    control.mode = "no_service_404";
    expect(await post(slack, { text: "a" })).toBe("404 no_service");
    control.mode = "no_service_410";
    expect(await post(slack, { text: "a" })).toBe("410 no_service");
    control.mode = "archived_403";
    expect(await post(slack, { text: "a" })).toBe("403 channel_is_archived");
    expect(control.messages).toHaveLength(0);
    control.mode = "stored_503";
    control.modeCount = 1;
    expect(await post(slack, { text: "b" })).toBe("503 service_unavailable");
    expect(await post(slack, { text: "c" })).toBe("200 ok");
    control.mode = "lost_response";
    await expect(post(slack, { text: "d" })).rejects.toThrow();
    expect(control.messages.map((message) => message.text)).toEqual(["b", "c", "d"]);
    control.mode = "hang";
    const hung = fetch(slack.webhookUrl, {
      method: "POST",
      body: "{}",
      signal: AbortSignal.timeout(50),
    });
    await expect(hung).rejects.toThrow();
  });
});
