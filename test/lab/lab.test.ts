/**
 * Goal: the laboratory shows which designs pay twice, and would show it if the real ledger did.
 * Method: built-in and own schedules; real PostgreSQL, real worker processes, the stand-in.
 */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";

import { afterAll, beforeAll, describe, expect, test } from "vitest";

import { lab } from "../../src/cli/commands/lab.ts";
import { main } from "../../src/cli/main.ts";
import { inheritedEnvironment } from "../../src/config/inherited.ts";
import { systemClock } from "../../src/core/clock.ts";
import { SCHEDULES } from "../../src/lab/built-in.ts";
import { runLab } from "../../src/lab/lab.ts";
import type { LabReport } from "../../src/lab/lab.ts";
import { parseSchedules } from "../../src/lab/schedule.ts";
import type { DesignName, Schedule } from "../../src/lab/schedule.ts";
import { labNotes, labTable } from "../../src/lab/text.ts";
import { createTestDb } from "../support/db.ts";
import type { TestDb } from "../support/db.ts";

function request(name: string, more: object = {}): object {
  return { request: name, principal: "p", operation: "o", key: "k", ...more };
}

function mine(name: string, events: readonly object[], expected: object = {}): readonly Schedule[] {
  const text = JSON.stringify({ schedules: [{ name, events, expect: expected }] });
  return parseSchedules(text, "mine");
}

// One key for two purchases of one principal: what a cache takes for a retry.
const SHARED_KEY = mine("shared_key", [
  { event: "arrive", ...request("a") },
  { event: "complete", request: "a" },
  { event: "arrive", ...request("b", { operation: "o2" }) },
]);
const RACE_OF_EIGHT = mine(
  "race_of_eight",
  [
    {
      event: "race",
      requests: Array.from({ length: 8 }, (_, index) => request(`r${String(index)}`)),
    },
    { event: "restart" },
    { event: "arrive", ...request("after") },
  ],
  { cache: { duplicates: 8 }, ledger: { effects: 1, duplicates: 0, blocked: 8 } },
);

function resultOf(report: LabReport, schedule: string, design: DesignName) {
  return report.results.find((one) => one.schedule === schedule && one.design === design);
}

describe("models", () => {
  const models = (more: readonly Schedule[]): Promise<LabReport> =>
    runLab({ version: "1", more, real: null, onProgress: () => undefined });

  test("default: the cache pays twice in five of eight, the ledger never", async () => {
    const report = await models([]);
    const twice = report.results.filter(({ counts }) => counts.duplicates > 0);
    expect(twice.map(({ schedule, design }) => `${design} ${schedule}`)).toEqual([
      "cache overlapping_arrivals",
      "cache lost_completion",
      "cache expired_retention",
      "cache regenerated_key",
      "cache process_restart",
    ]);
    expect(report.counterexamples).toEqual([]);
    expect(resultOf(report, "two_principals", "cache")?.counts.effects).toBe(2);
    expect(report.configuration).toMatchObject({
      designs: ["cache", "ledger_model"],
      postgres: null,
    });
  });

  test("behavior: the source is hashed, file by file", async () => {
    const { source } = await models([]);
    expect(source.sha256).toMatch(/^[0-9a-f]{64}$/);
    expect(source.files).toContain("lab/models.ts");
    expect(source.files).toContain("ledger/execute.ts");
    expect(await models([])).toMatchObject({ source });
  });

  test("behavior: an own schedule is a counterexample to the model, by claim", async () => {
    const report = await models(SHARED_KEY);
    expect(resultOf(report, "shared_key", "cache")?.counts).toMatchObject({
      ...{ effects: 1, replayed: 1, suppressed: 1 },
    });
    expect(report.counterexamples).toEqual([
      {
        ...{ schedule: "shared_key", design: "ledger_model", kind: "claim" },
        ...{ what: "suppressed", expected: 0, seen: 1 },
      },
    ]);
    expect(labNotes(report)).toContain("shared_key, ledger_model: suppressed is 1, 0 by claim");
  });

  test("behavior: an expectation that fails is one too; a name of ours is replaced", async () => {
    const events = [{ event: "arrive", ...request("a") }];
    const report = await models(mine("serial_retry", events, { cache: { effects: 2 } }));
    expect(report.configuration.schedules).toHaveLength(8);
    expect(report.counterexamples).toMatchObject([
      { design: "cache", kind: "expectation", what: "effects", expected: 2, seen: 1 },
    ]);
  });
});

describe("the real ledger", () => {
  let db: TestDb;
  let report: LabReport;
  beforeAll(async () => {
    db = await createTestDb({ template: "empty" });
    report = await runLab({
      version: "1",
      more: [...SHARED_KEY, ...RACE_OF_EIGHT],
      real: {
        ...{ pool: db.pool, databaseUrl: db.url, clock: systemClock },
        env: inheritedEnvironment(),
      },
      onProgress: () => undefined,
    });
  });
  afterAll(() => db.close());

  test.each(SCHEDULES.map(({ name }) => name))("default: %s", (name) => {
    const expected = SCHEDULES.find((one) => one.name === name)?.expect.ledger;
    expect(resultOf(report, name, "ledger")?.counts).toEqual(expected);
  });

  test("behavior: every operation is recorded once the dust has settled", () => {
    const settled = report.results.filter(({ design }) => design === "ledger");
    expect(settled.map((one) => one.settled)).toEqual(settled.map(({ counts }) => counts.effects));
  });

  test("behavior: one key for two purchases is two purchases; a race of eight is one", () => {
    expect(resultOf(report, "shared_key", "ledger")?.counts).toMatchObject({
      ...{ effects: 2, duplicates: 0, suppressed: 0 },
    });
    expect(resultOf(report, "race_of_eight", "ledger")?.counts).toMatchObject({
      ...{ effects: 1, blocked: 8 },
    });
    expect(report.counterexamples.map(({ design }) => design)).toEqual(["ledger_model"]);
  });

  test("behavior: the table has a row for each schedule and design", () => {
    const { head, rows } = labTable(report);
    expect(rows).toHaveLength(30);
    expect(rows.every((row) => row.length === head.length)).toBe(true);
    expect(report.configuration.postgres).toMatch(/^\d+/);
  });
});

describe("tallyd lab", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), "tallyd-lab-"));
  });
  afterAll(() => rm(folder, { recursive: true }));

  async function run(...argv: string[]) {
    const out: string[] = [];
    const err: string[] = [];
    const code = await main(argv, {
      ...{ commands: [lab], clock: systemClock, signal: new AbortController().signal },
      output: {
        stdout: (text) => out.push(text),
        stderr: (text) => err.push(text),
        terminal: false,
      },
    });
    return { code, out: out.join(""), err: err.join("") };
  }

  test("default: a table for people, JSON for programs", async () => {
    const { code, out } = await run("lab", "--models");
    expect(code).toBe(0);
    expect(out).toMatch(/^schedule +design +effects/);
    expect(out).toContain("No counterexample.");
    const { out: json } = await run("lab", "--models", "--json");
    expect(JSON.parse(json)).toMatchObject({ counterexamples: [], results: { length: 16 } });
  });

  test("behavior: 3 with a counterexample, as the README shows one", async () => {
    const readme = await readFile(path.join(import.meta.dirname, "../../README.md"), "utf8");
    const [example] = readme.match(/(?<=```json\n)\{\s+"schedules"[^`]+(?=```)/) ?? [];
    const file = path.join(folder, "mine.json");
    await writeFile(file, example ?? "");
    const { code, out } = await run("lab", "--models", "--schedules", file);
    expect(code).toBe(3);
    expect(out).toContain("Counterexamples:");
  });

  test("error: 2 with a file that is not there or not right", async () => {
    expect((await run("lab", "--schedules", path.join(folder, "no.json"))).code).toBe(2);
    const file = path.join(folder, "bad.json");
    await writeFile(file, '{"schedules":[{"name":"x","events":[{"event":"y"}]}]}');
    const { code, err } = await run("lab", "--schedules", file);
    expect(code).toBe(2);
    expect(err).toContain("schedules[0].events[0].event");
  });
});
