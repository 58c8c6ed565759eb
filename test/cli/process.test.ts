/** Goal: the real process: exit codes, signals, kill -9, one JSON document on stdout. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";

import { openStage } from "../daemon/stage.ts";
import type { TestStage } from "../daemon/stage.ts";
import { buildBin } from "../support/built.ts";
import type { Built } from "../support/built.ts";

const START_MS = 30_000;

let stage: TestStage;
let bin: Built;
const running: ChildProcess[] = [];
beforeAll(async () => {
  bin = await buildBin();
  stage = await openStage();
});
afterEach(() => {
  for (const child of running.splice(0)) child.kill("SIGKILL");
});
afterAll(async () => {
  await stage.close();
  await bin.remove();
});

interface Started {
  readonly child: ChildProcess;
  readonly out: () => string;
  readonly err: () => string;
  /** Exit code, or the signal's name. */
  readonly ended: Promise<number | string>;
}

function tallyd(args: readonly string[], env: Readonly<Record<string, string>> = {}): Started {
  const child = spawn(process.execPath, [bin.file, ...args], {
    env: { PATH: process.env["PATH"] ?? "", ...stage.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.push(child);
  let [out, err] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
  const ended = new Promise<number | string>((resolve) => {
    child.once("close", (code, signal) => {
      resolve(code ?? signal ?? "unknown");
    });
  });
  return { child, out: () => out, err: () => err, ended };
}

async function started(args: readonly string[]): Promise<Started> {
  const process = tallyd(args);
  await expect.poll(process.err, { timeout: START_MS }).toContain("watches:");
  return process;
}

describe("tallyd", () => {
  it("default: once on a healthy world is 0, and stdout holds one JSON document", async () => {
    const process = tallyd(["once", "--json"]);
    expect(await process.ended).toBe(0);
    expect(JSON.parse(process.out())).toMatchObject({ open: 0, failures: [] });
  });

  it("behavior: open incidents are 3, and an unread source wins with 4", async () => {
    stage.pay("nobody", { secondsAgo: 600 });
    const found = tallyd(["once", "--json"]);
    expect(await found.ended).toBe(3);
    expect(JSON.parse(found.out())).toMatchObject({ open: 1 });
    const listed = tallyd(["incidents", "list", "--json"]);
    expect(await listed.ended).toBe(0);
    expect(JSON.parse(listed.out())).toMatchObject([{ code: "orphan_charge", status: "open" }]);
    const body = { error: { type: "invalid_request_error", message: "Invalid API Key provided" } };
    const withdraw = stage.stripe.control.fault({ kind: "respond", status: 401, body });
    const blind = tallyd(["once"]);
    expect(await blind.ended).toBe(4);
    expect(blind.out()).toContain("NOT READ");
    withdraw();
  });

  it("error: a database out of reach is 4, without its password", async () => {
    const url = "postgres://someone:hunter2secret@127.0.0.1:1/shop";
    const process = tallyd(["once", "--json"], { DATABASE_URL: url });
    expect(await process.ended).toBe(4);
    expect(process.out() + process.err()).not.toContain("hunter2secret");
    expect(JSON.parse(process.out())).toMatchObject({ error: { code: "database" } });
  });

  it("error: bad settings are 2, all of them at once", async () => {
    const process = tallyd(["run"], { PORT: "abc", RESOLVE: "maybe" });
    expect(await process.ended).toBe(2);
    expect(process.err()).toContain("PORT");
    expect(process.err()).toContain("RESOLVE");
  });
});

describe("kill -9 while an alert is told", () => {
  /** A pass that finds a double charge is killed when Slack has its message. */
  async function killed(id: string, mode: "hang" | "stored_hang", amount: number): Promise<void> {
    const made = { secondsAgo: 600, amount };
    await stage.row({ id, state: "recorded", charge: `pi_${id}`, ...made });
    for (const n of [id, `${id}b`]) stage.pay(id, { id: `pi_${n}`, ...made });
    stage.slack.control.clear();
    stage.slack.control.mode = mode;
    const doomed = tallyd(["once"]);
    const asked = (): number => stage.slack.control.requests.length;
    await expect.poll(asked, { timeout: START_MS }).toBe(1);
    doomed.child.kill("SIGKILL");
    expect(await doomed.ended).toBe("SIGKILL");
    stage.slack.control.mode = "ok";
  }

  const told = (id: string): number =>
    stage.slack.control.messages.filter((one) => JSON.stringify(one.payload).includes(id)).length;

  it("behavior: before it arrived: it is told once by the next one", async () => {
    await killed("Lost1", "hang", 3_100);
    expect(told("Lost1")).toBe(0);
    for (let pass = 0; pass < 2; pass += 1) expect(await tallyd(["once"]).ended).toBe(3);
    expect(told("Lost1")).toBe(1);
  });

  it("behavior: before its answer: it is repeated once and no more", async () => {
    await killed("Twice1", "stored_hang", 3_200);
    expect(told("Twice1")).toBe(1);
    for (let pass = 0; pass < 2; pass += 1) expect(await tallyd(["once"]).ended).toBe(3);
    expect(told("Twice1")).toBe(2);
  });
});

describe("tallyd run", () => {
  it.each(["SIGTERM", "SIGINT"] as const)("default: %s stops it with 0", async (signal) => {
    const daemon = await started(["run"]);
    const began = performance.now();
    daemon.child.kill(signal);
    expect(await daemon.ended).toBe(0);
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(daemon.out()).toBe("");
  });

  it("behavior: a job that hangs at Stripe does not hold up the stop", async () => {
    const withdraw = stage.stripe.control.fault({ kind: "delay", delayMs: 20_000 });
    await stage.pool.query("delete from tallyd.job_run");
    const daemon = await started(["run"]);
    const began = performance.now();
    daemon.child.kill("SIGTERM");
    expect(await daemon.ended).toBe(0);
    expect(performance.now() - began).toBeLessThan(10_000);
    withdraw();
  });

  it("behavior: the second signal ends it at once with 1", async () => {
    // A request that hangs at the stand-in keeps a job, and so the stop, busy.
    const withdraw = stage.stripe.control.fault({ kind: "delay", delayMs: 8_000 });
    await stage.pool.query("delete from tallyd.job_run");
    const daemon = await started(["run"]);
    daemon.child.kill("SIGTERM");
    await expect.poll(daemon.err, { timeout: START_MS }).toContain("stopping");
    daemon.child.kill("SIGTERM");
    expect(await daemon.ended).toBe(1);
    withdraw();
  });

  it("behavior: kill -9 frees the work, and the next one takes it over", async () => {
    const withdraw = stage.stripe.control.fault({ kind: "delay", delayMs: 20_000 });
    await stage.pool.query("delete from tallyd.job_run");
    const doomed = await started(["run"]);
    const unfinished = async (): Promise<string[]> =>
      (
        await stage.pool.query<{ job: string }>(
          "select job from tallyd.job_run where finished_at is null order by job",
        )
      ).rows.map(({ job }) => job);
    await expect.poll(unfinished, { timeout: START_MS }).toContain("walk-lists");
    doomed.child.kill("SIGKILL");
    expect(await doomed.ended).toBe("SIGKILL");
    withdraw();
    const heir = await started(["run"]);
    await expect.poll(unfinished, { timeout: START_MS }).not.toContain("walk-lists");
    const done = await stage.pool.query(
      "select from tallyd.job_run where job = 'walk-lists' and finished_at is not null and error is null",
    );
    expect(done.rowCount).toBe(1);
    heir.child.kill("SIGTERM");
    expect(await heir.ended).toBe(0);
  });
});
