/**
 * Goal: text from outside cannot steer a terminal. Method: the characters that could.
 */
import { describe, expect, test } from "vitest";

import { visibleLine, visibleText } from "../../src/core/visible.ts";

describe("visibleLine", () => {
  test.each([
    ["plain text stays", "Größe 5 € 漢字 🙂", "Größe 5 € 漢字 🙂"],
    ["escape sequences", "a\u001b[31mb\u0007", "a\\u{1b}[31mb\\u{7}"],
    ["a C1 control", "\u009b2J", "\\u{9b}2J"],
    ["a line of one's own", "a\nat risk: 0\r", "a\\u{a}at risk: 0\\u{d}"],
    ["another direction", "a\u202eb", "a\\u{202e}b"],
    ["an invisible letter", "ord\u200b1", "ord\\u{200b}1"],
  ])("behavior: %s", (_what, text, shown) => {
    expect(visibleLine(text)).toBe(shown);
  });
});

describe("visibleText", () => {
  test("behavior: line ends are kept", () => {
    expect(visibleText("a\u001b\nb")).toBe("a\\u{1b}\nb");
  });
});
