// Goal: files stay small, named after what they hold, and finished.
// Method: every rule runs over the repository, and over a planted fault that it has to see.
import { describe, expect, test } from "vitest";

import { clockFaults, detectorFaults, parityFaults, timetableFaults } from "./detector-rules.ts";
import { filesBelow } from "./read-files.ts";
import type { RepoFile } from "./read-files.ts";
import {
  badName,
  focusedTests,
  leftovers,
  tooLongFile,
  tooLongFunctions,
  tooWideLines,
} from "./tidy-rules.ts";

const scripts = filesBelow(["src", "jobs", "test"], [".ts"]);
const statements = filesBelow(["sql"], [".sql"]);
const detectors = filesBelow(["sql/detectors"], [".sql"]);

function planted(name: string, text: string): RepoFile {
  return { name, text };
}

const line = (text: string, count: number): string => `${text}\n`.repeat(count);

describe("tidy", () => {
  test("default", () => {
    expect(scripts.filter((file) => file.name.startsWith("src/")).length).toBeGreaterThan(0);
  });

  const RULES = [
    {
      rule: tooLongFile,
      over: [...scripts, ...statements],
      bad: planted("src/a.ts", line("//", 301)),
      good: planted("test/a.test.ts", line("//", 500)),
    },
    {
      rule: tooWideLines,
      over: [...scripts, ...statements],
      bad: planted("src/a.ts", `// ${"x".repeat(98)}`),
      good: planted("sql/a.sql", `--! advice: ${"x".repeat(200)}`),
    },
    {
      rule: tooLongFunctions,
      over: scripts,
      bad: planted("src/a.ts", `const a = () => {\n${line("  b();", 69)}};`),
      good: planted("test/a.test.ts", `describe("a", () => {\n${line("  b();", 90)}});`),
    },
    {
      rule: leftovers,
      over: [...scripts, ...statements],
      bad: planted("src/a.ts", ["// FIX", "ME: later"].join("")),
      good: planted("src/a.ts", "// fixed"),
    },
    {
      rule: focusedTests,
      over: scripts,
      bad: planted("test/a.test.ts", `describe.each([1]).skip("a", () => 1);`),
      good: planted("src/a.ts", "page.skip(3);"),
    },
    {
      rule: badName,
      over: [...scripts, ...statements],
      bad: planted("src/readFiles.ts", ""),
      good: planted("test/detectors/double_charge.test.ts", ""),
    },
    {
      rule: badName,
      over: [],
      bad: planted("src/helpers/clock.ts", ""),
      good: planted("src/read-files.ts", ""),
    },
    {
      rule: detectorFaults,
      over: detectors,
      bad: planted("sql/detectors/a.sql", "select subject from a order by subject"),
      good: planted(
        "sql/detectors/a.sql",
        `${["title", "severity", "needs", "advice"].map((key) => `--! ${key}: x`).join("\n")}
         -- now() in a comment is fine, and so is 'select *' in quotes.
         select 'select *' as subject from a order by subject, b.id`,
      ),
    },
    {
      rule: clockFaults,
      over: filesBelow(["sql/detectors", "sql/views"], [".sql"]),
      bad: planted("sql/views/a.sql", "select now() as at"),
      good: planted("sql/views/a.sql", "select known_at from a"),
    },
  ] as const;

  for (const [index, { rule, over, bad, good }] of RULES.entries()) {
    test(`behavior: ${rule.name} (${String(index + 1)})`, () => {
      expect(rule(bad)).toHaveLength(rule === detectorFaults ? 4 : 1);
      expect(rule(good)).toEqual([]);
      expect(over.flatMap((file) => rule(file))).toEqual([]);
    });
  }

  test.each([
    ["src/a.ts", `const a = "${"x".repeat(110)}";`, 0],
    ["src/a.ts", `const a = "${"x".repeat(140)}";`, 1],
    ["src/a.ts", `const a = "x".repeat(3) ${"+ b ".repeat(30)};`, 1],
    ["sql/a.sql", `select '${"x".repeat(120)}' as a`, 0],
    ["sql/a.sql", `select ${"x".repeat(120)} as a`, 1],
  ])("behavior: tooWideLines lets a text run over a little: %s %s", (name, text, faults) => {
    expect(tooWideLines(planted(name, text))).toHaveLength(faults);
  });

  test.each([
    ["select * from a order by subject", "selects *"],
    ["select a.* from a order by subject", "selects *"],
    ["select subject from a", "does not end"],
    ["select subject from a order by subject limit 1", "does not end"],
    ["select subject, current_timestamp from a order by subject", "reads the clock"],
  ])("behavior: detectorFaults sees %s", (text, fault) => {
    expect(detectorFaults(planted("sql/detectors/a.sql", text)).join("\n")).toContain(fault);
  });

  test("behavior: parityFaults", () => {
    expect(parityFaults(["sql/detectors/a_b.sql"], ["test/detectors/c_d.test.ts"])).toHaveLength(2);
    const names = (files: readonly RepoFile[]): string[] => files.map((file) => file.name);
    const tests = filesBelow(["test/detectors"], [".test.ts"]);
    expect(parityFaults(names(detectors), names(tests))).toEqual([]);
  });

  test("behavior: timetableFaults", () => {
    const job = planted("jobs/prune.ts", "");
    expect(timetableFaults([job, planted("jobs/timetable.ts", "")])).toHaveLength(1);
    const listed = planted("jobs/timetable.ts", 'import { prune } from "./prune.ts";');
    expect(timetableFaults([job, listed])).toEqual([]);
    expect(timetableFaults(filesBelow(["jobs"], [".ts"]))).toEqual([]);
  });
});
