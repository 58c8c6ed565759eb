/** Goal: the timetable holds every job of jobs/, and each is fit to be scheduled. */
import { readdirSync } from "node:fs";

import { createTask } from "node-cron";
import { describe, expect, it } from "vitest";

import { timetable } from "../../jobs/timetable.ts";
import { cronOf } from "../../src/scheduler/cadence.ts";
import { chainSettings } from "../support/chain-rows.ts";
import { testSettings } from "../support/settings.ts";

const jobs = timetable(
  testSettings({ chains: [chainSettings()], heartbeatUrl: "http://127.0.0.1:1/alive" }),
);

describe("timetable", () => {
  it("default: one job per file, under the file's name", () => {
    const files = readdirSync(new URL("../../jobs", import.meta.url))
      .filter((file) => file.endsWith(".ts") && file !== "timetable.ts")
      .map((file) => file.slice(0, -3));
    expect(jobs.map(({ name }) => name).sort()).toEqual(files.sort());
  });

  it.each(jobs.map((job) => [job.name, job] as const))(
    "behavior: %s can be scheduled",
    (_n, job) => {
      // A colon would break the coordinator's key; the column holds 64 characters.
      expect(job.name).toMatch(/^[a-z][a-z-]{0,63}$/);
      expect(job.timeoutMs).toBeGreaterThanOrEqual(1_000);
      const task = createTask(cronOf(job.schedule), () => undefined, { timezone: "UTC" });
      expect(task.getNextRuns(1)).toHaveLength(1);
      void task.destroy();
    },
  );

  it("behavior: without a key nothing reads Stripe", () => {
    const { stripe } = testSettings();
    const names = timetable(testSettings({ stripe: { ...stripe, apiKey: null } })).map(
      ({ name }) => name,
    );
    expect(names).not.toContain("walk-lists");
    expect(names).toContain("read-local");
    expect(names).not.toContain("scan-chains");
  });
});
