// Goal: a click in Slack does what it says, once, by whom Slack says, and a request that Slack did
// not sign does and tells nothing. Method: real HTTP to the public port, requests as Slack makes
// them from the stand-in, real PostgreSQL.
import { createHmac } from "node:crypto";

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

import { deliverDue } from "../../src/alert/deliver.ts";
import { createSlackSend } from "../../src/alert/slack.ts";
import { mayAnswer, responseOrigins } from "../../src/alert/slack-response.ts";
import { silentLog } from "../../src/core/log.ts";
import type { Finding } from "../../src/core/finding.ts";
import type { Log } from "../../src/core/log.ts";
import { startWebhookServer } from "../../src/http/webhook-server.ts";
import type { WebhookServer } from "../../src/http/webhook-server.ts";
import type { IncidentDetailJson } from "../../src/incident/present.ts";
import { listIncidents, showIncident } from "../../src/incident/present.ts";
import { remindDue } from "../../src/incident/remind.ts";
import { recordFindings } from "../../src/incident/record.ts";
import { click, clickRequest } from "../../src/sandbox/slack/interactions.ts";
import type { Click } from "../../src/sandbox/slack/interactions.ts";
import { startSlackSandbox } from "../../src/sandbox/slack/server.ts";
import type { SlackSandbox } from "../../src/sandbox/slack/server.ts";
import { ALL_JUDGED, at, makeFinding } from "../incident/make.ts";
import { SETTINGS } from "../sources/stripe/shapes.ts";
import type { TestDb } from "../support/db.ts";
import { createTestDb, emptyTables } from "../support/db.ts";

const SECRET = "8f742231b10e8888abcd99yyyzzz85a5";
const USER = "U2147483697";

let db: TestDb;
let slack: SlackSandbox;
let server: WebhookServer;
let plain: WebhookServer;
let now = 0;
const logged: string[] = [];
const log: Log = { ...silentLog, warn: (text) => logged.push(text) };

beforeAll(async () => {
  db = await createTestDb();
  slack = await startSlackSandbox({ now: () => at(now).getTime() });
  const deps = {
    ...{ pool: db.pool, log, clock: { now: () => at(now) }, onStored: () => undefined },
    settings: { ...SETTINGS, webhookSecrets: ["whsec_current"] },
  };
  const slackActions = {
    ...{ pool: db.pool, log, clock: deps.clock, now: () => Promise.resolve(at(now)) },
    ...{ signingSecret: SECRET, origins: responseOrigins([slack.webhookUrl]) },
    programs: { webhook: null, pagerDuty: null, publicUrl: null },
  };
  const options = { host: "127.0.0.1", port: 0 };
  server = await startWebhookServer({ ...deps, slackActions }, options);
  plain = await startWebhookServer(deps, options);
});
afterAll(async () => {
  await server.close();
  await plain.close();
  await slack.close();
  await db.close();
});
beforeEach(async () => {
  now = 0;
  logged.length = 0;
  slack.control.clear();
  await emptyTables(db.pool, [
    ...["tallyd.incident", "tallyd.incident_entry", "tallyd.outbox", "tallyd.hook"],
    "tallyd.reminder",
  ]);
});

interface Button {
  readonly action_id: string;
  readonly value: string;
  readonly text: { readonly text: string };
}
interface Block {
  readonly type: string;
  readonly elements?: readonly Button[];
}

/** A double charge as it stands in the channel. */
async function told(
  change: { readonly buttons?: boolean; readonly finding?: Finding } = {},
): Promise<readonly Block[]> {
  const settings = {
    ...{ slackWebhookUrl: slack.webhookUrl, slackCriticalWebhookUrl: null, publicUrl: null },
    slackSigningSecret: change.buttons === false ? null : SECRET,
  };
  const findings = [change.finding ?? makeFinding()];
  const input = { findings, judged: ALL_JUDGED, now: at(now) };
  await recordFindings({ pool: db.pool, settings }, input);
  const hooks = { slack: createSlackSend(slack.webhookUrl), slackCritical: null };
  const deps = { pool: db.pool, now: () => Promise.resolve(at(now)), log: silentLog, paceMs: 1 };
  await deliverDue({ ...deps, hooks }, { limit: 10 });
  return (slack.control.messages.at(-1)?.blocks ?? []) as readonly Block[];
}

function buttonsOf(blocks: readonly Block[]): readonly Button[] {
  return blocks.find((block) => block.type === "actions")?.elements ?? [];
}

function labels(blocks: readonly Block[]): string[] {
  return buttonsOf(blocks).map((button) => button.text.text);
}

function address(of: WebhookServer = server): string {
  return `http://127.0.0.1:${String(of.port)}/slack/actions`;
}

/** A click on the button with this label, changed where the test says so. */
function onButton(blocks: readonly Block[], label: string, change: Partial<Click> = {}): Click {
  const button = buttonsOf(blocks).find((one) => one.text.text === label);
  return {
    ...{ to: address(), signingSecret: SECRET, userId: USER, blocks, now: at(now).getTime() },
    ...{ actionId: button?.action_id ?? "", value: button?.value ?? "" },
    responseUrl: `${slack.url}${slack.responses.issue()}`,
    ...change,
  };
}

async function incident(): Promise<IncidentDetailJson> {
  const [first] = await listIncidents(db.pool, {}, at(now));
  const shown = await showIncident(db.pool, first?.id ?? "", at(now));
  if (shown === null) throw new Error("there is no incident");
  return shown;
}

async function steps(): Promise<string[]> {
  return (await incident()).history.map(({ step, actor }) => `${step} ${actor}`);
}

/** What the stand-in got at the newest response_url. */
async function answered(count = 1) {
  await expect.poll(() => slack.responses.taken.length - taken, { timeout: 2_000 }).toBe(count);
  return slack.responses.taken.at(-1)?.payload ?? {};
}
let taken = 0;
beforeEach(() => {
  taken = slack.responses.taken.length;
});

describe("buttons", () => {
  test("default: acknowledge, and the message says by whom", async () => {
    const blocks = await told();
    expect(labels(blocks)).toEqual(["Acknowledge", "Mute 24 h", "Not a duplicate"]);
    expect(await click(onButton(blocks, "Acknowledge"))).toBe(200);
    expect((await incident()).status).toBe("acknowledged");
    expect(await steps()).toEqual(["opened tallyd", `acknowledged slack:${USER}`]);
    const answer = await answered();
    expect(answer).toMatchObject({ replace_original: true });
    const after = answer["blocks"] as readonly Block[];
    expect(after[0]).toEqual(blocks[0]);
    expect(labels(after)).toEqual(["Mute 24 h", "Not a duplicate"]);
    expect(JSON.stringify(after)).toContain(`Acknowledged by <@${USER}>, 2026-03-02 10:00 UTC`);
    // The name that came with the click is nowhere.
    const kept = await db.pool.query("select e::text as row from tallyd.incident_entry e");
    expect(JSON.stringify(kept.rows)).not.toContain("ana");
  });

  test("behavior: mute for a day, then not a duplicate", async () => {
    const blocks = await told();
    await click(onButton(blocks, "Mute 24 h"));
    expect(await incident()).toMatchObject({
      status: "muted",
      mutedUntil: at(86_400).toISOString(),
    });
    const muted = (await answered())["blocks"] as readonly Block[];
    expect(labels(muted)).toEqual(["Not a duplicate"]);
    await click(onButton(muted, "Not a duplicate"));
    expect(await incident()).toMatchObject({ status: "closed", closedBy: "person" });
    const closed = (await answered(2))["blocks"] as readonly Block[];
    expect(labels(closed)).toEqual([]);
    expect(JSON.stringify(closed)).toContain("Closed as not a duplicate by");
  });

  test("behavior: a reminder carries them too", async () => {
    const settings = {
      ...{ slackWebhookUrl: slack.webhookUrl, slackCriticalWebhookUrl: null, publicUrl: null },
      ...{ slackSigningSecret: SECRET, remindersMs: [1_800_000] },
    };
    const input = { findings: [makeFinding()], judged: ALL_JUDGED, now: at(now) };
    await recordFindings({ pool: db.pool, settings }, input);
    await remindDue({ pool: db.pool, settings }, at(1_900));
    const found = await db.pool.query<{ payload: { readonly blocks: readonly Block[] } }>(
      "select payload from tallyd.outbox where kind = 'reminded'",
    );
    expect(labels(found.rows[0]?.payload.blocks ?? [])).toHaveLength(3);
  });

  test("behavior: without the signing secret there are none, and the path is unknown", async () => {
    const blocks = await told({ buttons: false });
    expect(labels(blocks)).toEqual([]);
    const other = await fetch(`http://127.0.0.1:${String(plain.port)}/other`, { method: "POST" });
    const { headers, body } = clickRequest(onButton(blocks, "Acknowledge"));
    const answer = await fetch(address(plain), { method: "POST", headers, body });
    expect(answer.status).toBe(404);
    expect(await answer.text()).toBe(await other.text());
  });

  test("behavior: a click on what is closed changes nothing and says so to the person", async () => {
    const blocks = await told();
    await click(onButton(blocks, "Not a duplicate"));
    await answered();
    now += 1;
    expect(await click(onButton(blocks, "Acknowledge"))).toBe(200);
    expect(await answered(2)).toMatchObject({
      ...{ response_type: "ephemeral", replace_original: false },
      text: expect.stringContaining("is closed") as string,
    });
    expect((await incident()).status).toBe("closed");
  });
});

describe("a message that facts have left behind", () => {
  const THIRD = makeFinding({ charges: ["ch_1", "ch_2", "ch_3"], amountAtRisk: 2500n });

  test.each(["Acknowledge", "Mute 24 h", "Not a duplicate"])(
    "behavior: %s under an old message says nothing about a third charge",
    async (label) => {
      const old = await told();
      now += 10;
      const blocks = await told({ finding: THIRD });
      await click(onButton(old, label));
      expect(await answered()).toMatchObject({
        response_type: "ephemeral",
        text: expect.stringMatching(/got worse since \(one more: ch_3;.*newest message/) as string,
      });
      expect((await incident()).status).toBe("open");
      await click(onButton(blocks, label));
      expect((await incident()).status).not.toBe("open");
    },
  );

  test("behavior: what stays as it is may be answered late, also under a changed message", async () => {
    const old = await told();
    now += 3_600;
    await told();
    await click(onButton(old, "Acknowledge"));
    const after = (await answered())["blocks"] as readonly Block[];
    await click(onButton(after, "Not a duplicate"));
    expect((await incident()).status).toBe("closed");
  });

  test("behavior: a button of an earlier version still works", async () => {
    const blocks = await told();
    const value = (await incident()).id;
    await click(onButton(blocks, "Not a duplicate", { value }));
    expect((await incident()).status).toBe("closed");
  });
});

describe("who may click", () => {
  test.each([
    ["another secret", { signingSecret: "00000000000000000000000000000000" }],
    ["a time of six minutes ago", { now: at(-301).getTime() }],
    ["a time six minutes ahead", { now: at(301).getTime() }],
  ] as const)("error: %s is 401 without a word", async (_name, change) => {
    const blocks = await told();
    const { headers, body } = clickRequest(onButton(blocks, "Acknowledge", change));
    const answer = await fetch(address(), { method: "POST", headers, body });
    expect(answer.status).toBe(401);
    expect(await answer.text()).toBe("");
    expect((await incident()).status).toBe("open");
  });

  test("behavior: five minutes are allowed to either side", async () => {
    const blocks = await told();
    for (const seconds of [-299, 299]) {
      const change = { now: at(seconds).getTime() };
      expect(await click(onButton(blocks, "Acknowledge", change))).toBe(200);
    }
  });

  test.each(["x-slack-signature", "x-slack-request-timestamp"])(
    "error: without %s it is 401",
    async (name) => {
      const { headers, body } = clickRequest(onButton(await told(), "Acknowledge"));
      const rest = Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name));
      const answer = await fetch(address(), { method: "POST", headers: rest, body });
      expect(answer.status).toBe(401);
    },
  );

  test("error: one changed byte is 401", async () => {
    const { headers, body } = clickRequest(onButton(await told(), "Acknowledge"));
    const answer = await fetch(address(), { method: "POST", headers, body: `${body}&x=1` });
    expect(answer.status).toBe(401);
  });

  test("behavior: the same request again changes nothing, whatever happened since", async () => {
    const blocks = await told();
    const request = clickRequest(onButton(blocks, "Not a duplicate"));
    const send = () => fetch(address(), { method: "POST", ...request });
    await Promise.all([send(), send()]);
    const worse = makeFinding({ charges: ["ch_1", "ch_2", "ch_3"] });
    const settings = { slackWebhookUrl: null, slackCriticalWebhookUrl: null, publicUrl: null };
    const input = { findings: [worse], judged: ALL_JUDGED, now: at(now) };
    await recordFindings({ pool: db.pool, settings }, input);
    expect((await send()).status).toBe(200);
    expect((await incident()).status).toBe("open");
    expect(await steps()).toEqual(["opened tallyd", `closed slack:${USER}`, "reopened tallyd"]);
  });
});

describe("what does not fit", () => {
  test("error: a body over the limit is 413, another method 405", async () => {
    const body = "x".repeat(600 * 1024);
    expect((await fetch(address(), { method: "POST", body })).status).toBe(413);
    expect((await fetch(address())).status).toBe(405);
  });

  test.each([
    ["no form", "nonsense"],
    ["no JSON", "payload=nonsense"],
    ["another kind", `payload=${encodeURIComponent('{"type":"view_closed"}')}`],
  ])("behavior: %s that Slack signed is taken and does nothing", async (_name, body) => {
    await told();
    const seconds = String(at(now).getTime() / 1_000);
    const signed = createHmac("sha256", SECRET).update(`v0:${seconds}:${body}`).digest("hex");
    const headers = { "x-slack-request-timestamp": seconds, "x-slack-signature": `v0=${signed}` };
    expect((await fetch(address(), { method: "POST", headers, body })).status).toBe(200);
    expect(await steps()).toEqual(["opened tallyd"]);
  });

  test.each([
    ["a button of another app", { actionId: "approve" }],
    ["no incident's id", { value: "' or 1=1 --" }],
    ["no user's id", { userId: "ana <script>" }],
  ])("behavior: %s does nothing", async (_name, change) => {
    expect(await click(onButton(await told(), "Acknowledge", change))).toBe(200);
    expect(await steps()).toEqual(["opened tallyd"]);
  });

  test("behavior: an answer address that is not Slack's is not asked", async () => {
    const stranger = await startSlackSandbox();
    const responseUrl = `${stranger.url}${stranger.responses.issue()}`;
    expect(await click(onButton(await told(), "Acknowledge", { responseUrl }))).toBe(200);
    await expect.poll(() => logged).toEqual([expect.stringContaining("not Slack's")]);
    expect(stranger.responses.taken).toEqual([]);
    expect((await incident()).status).toBe("acknowledged");
    await stranger.close();
  });

  test.each([
    ["https://hooks.slack.com/actions/T0/1/x", true],
    ["http://hooks.slack.com/actions/T0/1/x", false],
    ["https://hooks.slack.com:8443/x", false],
    ["https://me@hooks.slack.com/x", false],
    ["https://hooks.slack.com.evil.example/x", false],
    ["https://evil.example/?https://hooks.slack.com/", false],
    ["https://evilhooks.slack.com/x", false],
    ["https://169.254.169.254/latest", false],
    ["file:///etc/passwd", false],
    ["nonsense", false],
  ])("behavior: %s may be answered: %s", (url, may) => {
    expect(mayAnswer(url, responseOrigins([null]))).toBe(may);
  });

  test("behavior: a response_url that is used up is a remark in the log", async () => {
    const blocks = await told();
    const responseUrl = `${slack.url}/actions/T0/none/x`;
    expect(await click(onButton(blocks, "Acknowledge", { responseUrl }))).toBe(200);
    await expect.poll(() => logged).toEqual([expect.stringContaining("could not be changed")]);
  });
});
