/** Goal: one line per fact and no secret in it, whatever is logged. */
import { describe, expect, it } from "vitest";

import { createLog, redact } from "../../src/cli/log.ts";
import { createProgress } from "../../src/cli/progress.ts";

const clock = { now: () => new Date("2026-05-04T12:00:00Z") };

function logOf(terminal: boolean) {
  const lines: string[] = [];
  const log = createLog({ write: (text) => lines.push(text), terminal, clock });
  return { log, lines };
}

describe("createLog", () => {
  it("default: JSON lines without a terminal", () => {
    const { log, lines } = logOf(false);
    log.info("read", { rows: 12n, until: clock.now() });
    expect(JSON.parse(lines[0] ?? "")).toEqual({
      at: "2026-05-04T12:00:00.000Z",
      level: "info",
      message: "read",
      rows: "12",
      until: "2026-05-04T12:00:00.000Z",
    });
  });

  it("behavior: readable lines on a terminal", () => {
    const { log, lines } = logOf(true);
    log.warn("job failed", { job: "audit", tries: 2 });
    expect(lines).toEqual(["12:00:00 warn  job failed job=audit tries=2\n"]);
  });

  it("behavior: the level hides what is below it", () => {
    const { log, lines } = logOf(true);
    log.debug("a");
    log.configure({ level: "error", secrets: [] });
    log.warn("b");
    log.error("c");
    expect(lines).toHaveLength(1);
  });

  it("behavior: errors show their words, and their stack at debug", () => {
    const { log, lines } = logOf(false);
    const refused = new AggregateError([new Error("connect ECONNREFUSED 127.0.0.1:1")]);
    log.info("x", { error: refused });
    log.configure({ level: "debug", secrets: [] });
    log.info("y", { error: new Error("boom") });
    expect(lines[0]).toContain("connect ECONNREFUSED 127.0.0.1:1");
    expect(lines[0]).not.toContain("log.test.ts");
    expect(lines[1]).toContain("log.test.ts");
  });

  it.each([
    ["a known secret", "token s3cret-value!", ["s3cret-value!"], "s3cret-value!"],
    ["a Stripe key", "key rk_live_0123456789abcdef", [], "rk_live_0123456789abcdef"],
    ["a webhook secret", "whsec_0123456789abcdef", [], "whsec_0123456789abcdef"],
    ["a password in a URL", "postgres://user:hunter2@db/x", [], "hunter2"],
    ["a Slack hook", "https://hooks.slack.com/services/T0/B0/xyz", [], "T0/B0/xyz"],
  ])("behavior: %s is never printed", (_name, text, secrets, hidden) => {
    expect(redact(text, secrets)).not.toContain(hidden);
    const { log, lines } = logOf(false);
    log.configure({ level: "info", secrets });
    log.info(text, { nested: { deep: [text] }, error: new Error(text) });
    expect(lines.join("")).not.toContain(hidden);
  });
});

describe("createProgress", () => {
  it("default: a terminal is redrawn in place, at most ten times a second", () => {
    let ms = 0;
    const out: string[] = [];
    const bar = createProgress({
      write: (text) => out.push(text),
      terminal: true,
      columns: 60,
      clock: { now: () => new Date(ms) },
    });
    for (let done = 0; done <= 100; done += 1) {
      bar.show({ label: "charges", done, total: 100 });
      ms += 10;
    }
    bar.finish();
    expect(out.length).toBeLessThanOrEqual(13);
    expect(out[0]).toMatch(/^\r/);
    expect(out.at(-2)).toContain("100% charges 100 of 100");
    expect(out.at(-1)).toBe("\n");
    expect(Math.max(...out.map((text) => text.length))).toBeLessThan(70);
  });

  it("behavior: plain lines every few seconds otherwise, the last one always", () => {
    let ms = 0;
    const out: string[] = [];
    const lines = createProgress({
      write: (text) => out.push(text),
      terminal: false,
      clock: { now: () => new Date(ms) },
    });
    for (let done = 0; done < 100; done += 1) {
      lines.show({ label: "charges", done, total: null, fraction: done / 99 });
      ms += 100;
    }
    lines.finish();
    expect(out).toEqual([
      "charges: 0% 0\n",
      "charges: 30% 30\n",
      "charges: 60% 60\n",
      "charges: 90% 90\n",
      "charges: 100% 99\n",
    ]);
  });

  it("behavior: no total is no bar, and nothing shown is nothing to finish", () => {
    const out: string[] = [];
    const bar = createProgress({ write: (text) => out.push(text), terminal: true, clock });
    bar.finish();
    expect(out).toEqual([]);
    bar.show({ label: "events", done: 7, total: null });
    expect(out[0]).toContain("events: 7");
  });
});
