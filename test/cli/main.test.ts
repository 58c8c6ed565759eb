/**
 * Goal: the outside contract of the command line. Method: `main` with commands of the test's own.
 */
import { describe, expect, it } from "vitest";

import { EXIT } from "../../src/cli/command.ts";
import type { Command } from "../../src/cli/command.ts";
import { failureOf } from "../../src/cli/failure.ts";
import { main } from "../../src/cli/main.ts";
import { ConfigError, UnreadableError } from "../../src/core/errors.ts";
import { EmbeddedError, SchemaNewerError } from "../../src/store/errors.ts";

const echo: Command = {
  name: "echo",
  summary: "say it again",
  usage: ["[WORD]"],
  details: [],
  options: {
    loud: { type: "boolean", help: "in capitals" },
    note: { type: "string", value: "TEXT", help: "a remark" },
  },
  argsMax: 1,
  run: (context) =>
    Promise.resolve({
      exitCode: EXIT.incidents,
      json: { args: context.args, flags: context.flags, amount: 12345678901234567890n },
      text: `heard ${context.args.join(" ")}`,
    }),
};
const broken: Command = {
  ...echo,
  name: "broken",
  run: () => Promise.reject(new Error("postgres://u:hunter2@db refused")),
};

async function run(...argv: string[]) {
  const out: string[] = [];
  const err: string[] = [];
  const code = await main(argv, {
    commands: [echo, broken],
    output: { stdout: (t) => out.push(t), stderr: (t) => err.push(t), terminal: false },
    clock: { now: () => new Date(0) },
    signal: new AbortController().signal,
  });
  return { code, out: out.join(""), err: err.join("") };
}

describe("main", () => {
  it("default: text on stdout and the command's own exit code", async () => {
    expect(await run("echo", "hi")).toEqual({ code: 3, out: "heard hi\n", err: "" });
  });

  it.each([["before"], ["after"]])("behavior: --json %s the command", async (where) => {
    const argv = where === "before" ? ["--json", "echo", "hi"] : ["echo", "hi", "--json"];
    const { code, out } = await run(...argv);
    expect(code).toBe(3);
    expect(JSON.parse(out)).toMatchObject({ args: ["hi"], amount: "12345678901234567890" });
  });

  it("behavior: options in both spellings, arguments after --", async () => {
    const { out } = await run("echo", "--json", "--note=a b", "--loud", "--", "--not-an-option");
    expect(JSON.parse(out)).toMatchObject({
      args: ["--not-an-option"],
      flags: { note: "a b", loud: true },
    });
  });

  it.each([
    [["ecko"], 'command "ecko" is unknown. Did you mean "echo"?'],
    [["echo", "--lout"], 'option --lout is unknown. Did you mean "--loud"?'],
    [["echo", "--note"], "option --note needs a value: --note TEXT."],
    [["echo", "--loud=yes"], "option --loud takes no value."],
    [["echo", "a", "b"], '"b" is too much: tallyd echo takes at most 1 arguments.'],
    [[], "a command is missing."],
  ])("error: %j", async (argv, words) => {
    const text = await run(...argv);
    expect(text).toMatchObject({ code: 2, out: "" });
    expect(text.err).toContain(words);
    const json = await run(...argv, "--json");
    expect(json).toMatchObject({ code: 2, err: "" });
    const parsed = JSON.parse(json.out) as { error: { code: string; faults: string[] } };
    expect(parsed.error.code).toBe("usage");
    expect(parsed.error.faults.join(" ")).toContain(words);
  });

  it("error: every fault of a command line is told at once", async () => {
    const { err } = await run("echo", "--x", "--y", "a", "b");
    expect(err).toContain("--x");
    expect(err).toContain("--y");
    expect(err).toContain('"b"');
  });

  it("error: a fault is 1, short, and without secrets", async () => {
    const { code, out, err } = await run("broken");
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toBe("tallyd: postgres://u:[redacted]@db refused\n");
  });

  it.each([["help"], ["--help"], ["-h"], ["help", "echo"], ["echo", "--help"], ["echo", "-h"]])(
    "behavior: %s %s",
    async (...argv) => {
      const { code, out } = await run(...argv);
      expect(code).toBe(0);
      expect(out).toContain("Exit codes:");
      expect(out).toContain(argv.includes("echo") ? "--note TEXT" : "say it again");
    },
  );
});

describe("failureOf", () => {
  const withCode = (code: string) => Object.assign(new Error(code), { code });
  it.each([
    [new ConfigError(["a", "b"]), 2],
    [new SchemaNewerError({ current: 9, known: 4, breaking: false }), 2],
    [new UnreadableError("auth", "no"), 4],
    [new EmbeddedError("no"), 4],
    [withCode("ECONNREFUSED"), 4],
    [new AggregateError([withCode("ECONNREFUSED"), withCode("ECONNREFUSED")]), 4],
    [withCode("28P01"), 4],
    [withCode("3D000"), 4],
    [withCode("57P01"), 4],
    [new Error("Connection terminated unexpectedly"), 4],
    [withCode("42P01"), 1],
    [withCode("23505"), 1],
    [new TypeError("x is not a function"), 1],
    ["a string", 1],
  ])("default: %s is %i", (error, exitCode) => {
    expect(failureOf(error).exitCode).toBe(exitCode);
  });
});
