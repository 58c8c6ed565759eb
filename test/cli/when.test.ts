/** Goal: a time on the command line means one moment, or is refused. */
import { describe, expect, it } from "vitest";

import { parseLength, parseSince, parseTime } from "../../src/cli/when.ts";

const now = new Date("2026-05-04T12:00:00Z");

describe("parseSince", () => {
  it.each([
    ["90d", "2026-02-03T12:00:00.000Z"],
    ["24h", "2026-05-03T12:00:00.000Z"],
    ["2026-05-01", "2026-05-01T00:00:00.000Z"],
    ["2026-05-01T10:00Z", "2026-05-01T10:00:00.000Z"],
    ["2026-05-01T10:00:30+02:00", "2026-05-01T08:00:30.000Z"],
  ])("default: %s", (text, expected) => {
    expect(parseSince(text, "--since", now).toISOString()).toBe(expected);
  });

  it.each(["", "90", "yesterday", "2026-02-31", "2026-13-01", "2026-05-01T10:00", "05/01/2026"])(
    "error: %j is refused with what is allowed",
    (text) => {
      expect(() => parseSince(text, "--since", now)).toThrow(/--since: saw .*allowed/);
    },
  );
});

describe("parseTime and parseLength", () => {
  it("error: a length is no time, and a time is no length", () => {
    expect(() => parseTime("24h", "--until")).toThrow("--until");
    expect(() => parseLength("2026-05-01", "--for")).toThrow("--for");
    expect(() => parseLength("0h", "--for")).toThrow("--for");
  });
});
