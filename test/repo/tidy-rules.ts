// Size, names and leftovers of single files, each rule one function: file in, sentences out.
import ts from "typescript";

import { lineOf, parse, walk } from "./read-files.ts";
import type { RepoFile } from "./read-files.ts";

// What a reader takes in at once; a test may be longer because its cases are read one by one.
const FILE_LINES_MAX = 300;
const TEST_LINES_MAX = 500;
// One screen. The describe block of a test is a heading, not a function.
const FUNCTION_LINES_MAX = 70;
const COLUMNS_MAX = 100;
// SQL is aligned as a table, and wrapping a column list hides which line differs.
const SQL_COLUMNS_MAX = 120;
const TEXT_COLUMNS_MAX = 140;

// Split, so that this file does not find itself.
const LEFTOVERS = new RegExp(
  `\\b(${["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"].join("|")})\\b`,
);
const FOCUS: readonly string[] = ["only", "skip", "todo", "fails"];
const TEST_ROOTS: readonly string[] = ["test", "it", "describe", "suite", "bench"];

const TEST_TITLE = /^ *(test|it|describe)(\.\w+(\(.*?\))?)*\(["`]/;

const SCRIPT_NAME = /^[a-z0-9]+(-[a-z0-9]+)*(\.test|\.config)?\.ts$/;
const SQL_NAME = /^[a-z0-9]+(_[a-z0-9]+)*\.sql$/;
const BANNED_NAME = /^(utils?|commons?|helpers?|misc)(\.|$)/;

/** Files over their limit of lines. */
export function tooLongFile(file: RepoFile): readonly string[] {
  const limit = file.name.startsWith("test/") ? TEST_LINES_MAX : FILE_LINES_MAX;
  const lines = linesOf(file).length;
  if (lines <= limit) return [];
  return [
    `${file.name} has ${String(lines)} lines, ${String(limit)} are allowed: split it by topic`,
  ];
}

/**
 * Lines over the limit of columns. A text in quotes may run over it, up to the limit of texts: a
 * message that is broken in two cannot be searched for. A detector's header is one line by format.
 */
export function tooWideLines(file: RepoFile): readonly string[] {
  const limit = file.name.endsWith(".sql") ? SQL_COLUMNS_MAX : COLUMNS_MAX;
  const wide = linesOf(file).flatMap((line, index) => {
    if (line.length <= limit || line.startsWith("--!")) return [];
    return [{ line, number: index + 1 }];
  });
  if (wide.length === 0) return [];
  const inText = file.name.endsWith(".sql") ? inSqlText : inScriptText(file);
  return wide
    .filter(({ line, number }) => line.length > TEXT_COLUMNS_MAX || !inText(line, number, limit))
    .map(({ line, number }) => {
      const place = `${file.name}:${String(number)}`;
      return `${place} has ${String(line.length)} columns, ${String(limit)} are allowed`;
    });
}

type InText = (line: string, number: number, column: number) => boolean;

const inSqlText: InText = (line, _number, column) =>
  (line.slice(0, column).split("'").length - 1) % 2 === 1;

function inScriptText(file: RepoFile): InText {
  const source = parse(file);
  const spans: { from: number; to: number }[] = [];
  walk(source, (node) => {
    const isText = ts.isStringLiteralLike(node) || ts.isTemplateExpression(node);
    if (isText) spans.push({ from: node.getStart(source), to: node.getEnd() });
  });
  return (line, number, column) => {
    // Prettier keeps the title of a test and the head of its function on one line.
    if (TEST_TITLE.test(line)) return true;
    const at = source.getPositionOfLineAndCharacter(number - 1, column);
    return spans.some(({ from, to }) => from <= at && at <= to);
  };
}

/** Functions over the limit of lines. */
export function tooLongFunctions(file: RepoFile): readonly string[] {
  const source = parse(file);
  const found: string[] = [];
  walk(source, (node) => {
    if (!ts.isFunctionLike(node) || !("body" in node) || node.body === undefined) return;
    if (isDescribeBlock(node)) return;
    const first = lineOf(source, node);
    const last = source.getLineAndCharacterOfPosition(node.getEnd()).line + 1;
    const lines = last - first + 1;
    if (lines <= FUNCTION_LINES_MAX) return;
    found.push(
      `${file.name}:${String(first)} a function of ${String(lines)} lines, ` +
        `${String(FUNCTION_LINES_MAX)} are allowed: name its steps`,
    );
  });
  return found;
}

function isDescribeBlock(node: ts.Node): boolean {
  const call = node.parent;
  return ts.isCallExpression(call) && rootName(call.expression) === "describe";
}

/** Notes to oneself that were never settled. */
export function leftovers(file: RepoFile): readonly string[] {
  return linesOf(file).flatMap((line, index) => {
    const word = LEFTOVERS.exec(line)?.[0];
    if (word === undefined) return [];
    return [`${file.name}:${String(index + 1)} says ${word}: settle it, or file it as an issue`];
  });
}

/** Tests that are switched off, or that switch the others off. */
export function focusedTests(file: RepoFile): readonly string[] {
  const source = parse(file);
  const found: string[] = [];
  walk(source, (node) => {
    if (!ts.isPropertyAccessExpression(node) || !FOCUS.includes(node.name.text)) return;
    if (!TEST_ROOTS.includes(rootName(node.expression))) return;
    found.push(`${file.name}:${String(lineOf(source, node))} .${node.name.text}: run every test`);
  });
  return found;
}

/** `test` of `test.each([...])`. */
function rootName(node: ts.Expression): string {
  if (ts.isIdentifier(node)) return node.text;
  if (ts.isPropertyAccessExpression(node)) return rootName(node.expression);
  if (ts.isCallExpression(node)) return rootName(node.expression);
  return "";
}

/** Names in the wrong case, and names that say nothing. */
export function badName(file: RepoFile): readonly string[] {
  const parts = file.name.split("/");
  const banned = parts.find((part) => BANNED_NAME.test(part));
  if (banned !== undefined) {
    return [`${file.name}: ${banned} says nothing; name what the file is about`];
  }
  const base = parts.at(-1) ?? "";
  if (file.name.endsWith(".sql")) {
    return SQL_NAME.test(base) ? [] : [`${file.name}: SQL files are named in snake_case`];
  }
  // The test of a detector carries the detector's name, letter by letter.
  const ofDetector = file.name.startsWith("test/detectors/") && base.endsWith(".test.ts");
  if (SCRIPT_NAME.test(base) || (ofDetector && SQL_NAME.test(base.replace(".test.ts", ".sql")))) {
    return [];
  }
  return [`${file.name}: TypeScript files are named in kebab-case`];
}

function linesOf(file: RepoFile): readonly string[] {
  const lines = file.text.split("\n");
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}
