/**
 * The README is held to the code: every setting with its default, every finding with its title,
 * every
 * command, and both commands of a fresh machine.
 */
import { readFileSync } from "node:fs";
import path from "node:path";

import { expect, test } from "vitest";

import { COMMANDS } from "../../src/cli/commands.ts";
import { CATALOG } from "../../src/config/catalog.ts";
import { loadDetectors } from "../../src/detect/load.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const README = readFileSync(path.join(ROOT, "README.md"), "utf8");

/** The rows of all tables, cells trimmed. */
function tableRows(text: string): string[][] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) =>
      line
        .slice(1, -1)
        .split(" | ")
        .map((cell) => cell.replaceAll("|", "").trim()),
    );
}

const rows = tableRows(README);

test("default: the tables are read at all", () => {
  expect(rows.length).toBeGreaterThan(60);
  expect(CATALOG.length).toBeGreaterThan(30);
});

test.each(CATALOG.map((entry) => [entry.env ?? entry.path ?? "", entry] as const))(
  "behavior: the setting %s stands in the README with its default",
  (_name, entry) => {
    const first = entry.env === null ? "-" : `\`${entry.env}\``;
    const row = rows.find(
      ([env, file]) => env === first && (entry.env !== null || file === `\`${entry.path ?? ""}\``),
    );
    const expected =
      entry.default === null || entry.default === "" ? "none" : `\`${entry.default}\``;
    expect(row?.[2]).toBe(expected);
    expect(row?.[3]?.length).toBeGreaterThan(5);
  },
);

test.each(loadDetectors().map((detector) => [detector.name, detector] as const))(
  "behavior: the finding of %s stands in the README with severity and advice",
  (_name, detector) => {
    const row = rows.find(([code, title]) => {
      return code === `\`${detector.code}\`` && title === detector.title;
    });
    expect(row?.slice(2)).toEqual([detector.severity, detector.advice]);
  },
);

test.each(COMMANDS.map((command) => command.name).filter((name) => name !== "version"))(
  "behavior: the command %s stands in the README",
  (name) => {
    expect(rows.some(([cell]) => cell?.startsWith(`\`tallyd ${name}`) === true)).toBe(true);
  },
);

test("behavior: both commands of a fresh machine stand in the README", () => {
  expect(README).toContain("npm ci && npm run demo");
  expect(README).toContain("npm ci && npm test");
});

test("behavior: links to files of the repository lead somewhere", () => {
  const links = [...README.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map((match) => match[1] ?? "");
  expect(links.length).toBeGreaterThan(3);
  for (const link of links) expect(() => readFileSync(path.join(ROOT, link))).not.toThrow(/ENOENT/);
});
