/**
 * Goal: what `npm pack` makes can be used by others: libraries, types, command line.
 * Method: the build script and `npm pack` on a copy; the package unpacked into a fresh project
 * whose other packages are linked. No network.
 */
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";

import { afterAll, beforeAll, expect, test } from "vitest";

const ROOT = path.join(import.meta.dirname, "../..");
const SOURCES = ["src", "jobs", "sql", "deploy", "package.json", "README.md", "CHANGELOG.md"];
const ALSO = ["LICENSE", "tsconfig.json", "tsconfig.build.json"];

// A build and an npm run: ten seconds alone, far longer among other tests on two cores.
const BUILD_WAIT_MS = 300_000;
const start = promisify(execFile);
let folder: string;
let project: string;

async function run(cwd: string, program: string, ...args: string[]) {
  try {
    const { stdout, stderr } = await start(program, args, { cwd, maxBuffer: 64_000_000 });
    return { code: 0, text: `${stdout}${stderr}` };
  } catch (error) {
    const failed = error as { code: number; stdout: string; stderr: string };
    return { code: failed.code, text: `${failed.stdout}${failed.stderr}` };
  }
}

async function mustRun(cwd: string, program: string, ...args: string[]): Promise<string> {
  const { code, text } = await run(cwd, program, ...args);
  if (code !== 0)
    throw new Error(`${program} ${args.join(" ")} ended with ${String(code)}:\n${text}`);
  return text;
}

/** Links every package of ours into the project, so that nothing is fetched. */
async function linkPackages(): Promise<void> {
  const from = path.join(ROOT, "node_modules");
  const to = path.join(project, "node_modules");
  for (const name of await readdir(from)) {
    if (name !== "tallyd") await symlink(path.join(from, name), path.join(to, name));
  }
}

/** Types are checked by a check of their own; the build of this test only has to write files. */
async function leaveTypesUnchecked(file: string): Promise<void> {
  const text = await readFile(file, "utf8");
  const build = "tsc -p tsconfig.build.json";
  if (!text.includes(build)) throw new Error(`the build script does not begin with ${build}`);
  await writeFile(file, text.replace(build, `${build} --noCheck`));
}

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), "tallyd-pack-"));
  const copy = path.join(folder, "copy");
  project = path.join(folder, "project");
  for (const name of [...SOURCES, ...ALSO]) {
    await cp(path.join(ROOT, name), path.join(copy, name), { recursive: true });
  }
  await symlink(path.join(ROOT, "node_modules"), path.join(copy, "node_modules"));
  await leaveTypesUnchecked(path.join(copy, "package.json"));
  await mustRun(copy, "npm", "run", "build");
  await mustRun(copy, "npm", "pack", "--offline", "--pack-destination", folder);
  const tarball = (await readdir(folder)).find((name) => name.endsWith(".tgz")) ?? "";
  await mkdir(path.join(project, "node_modules", "tallyd"), { recursive: true });
  const into = path.join(project, "node_modules", "tallyd");
  await mustRun(folder, "tar", "xzf", tarball, "-C", into, "--strip-components=1");
  await linkPackages();
  await writeFile(path.join(project, "package.json"), '{"type":"module","private":true}');
}, BUILD_WAIT_MS);
afterAll(() => rm(folder, { recursive: true, force: true }));

async function evaluate(source: string) {
  return run(project, process.execPath, "--input-type=module", "-e", source);
}

/** Checks files as a user of the package would, strictly. */
async function check(files: Readonly<Record<string, string>>) {
  for (const [name, text] of Object.entries(files)) {
    await writeFile(path.join(project, name), text);
  }
  const tsc = path.join(ROOT, "node_modules", "typescript", "bin", "tsc");
  const options = ["--strict", "--noEmit", "--target", "es2023", "--types", "node"];
  const module = ["--module", "nodenext", "--skipLibCheck", ...Object.keys(files)];
  return run(project, process.execPath, tsc, ...options, ...module);
}

async function examples(heading: string): Promise<readonly string[]> {
  const readme = await readFile(path.join(ROOT, "README.md"), "utf8");
  const [section = ""] = readme.split(`\n## ${heading}\n`)[1]?.split("\n## ") ?? [];
  return [...section.matchAll(/(?<=```ts\n)[^]*?(?=```)/g)].map(([code]) => code);
}

test("default: the libraries can be imported", async () => {
  const { text } = await evaluate(`
    const ledger = await import("tallyd/ledger");
    const gateway = await import("tallyd/gateway");
    console.log(JSON.stringify([Object.keys(ledger), Object.keys(gateway)]));`);
  const [ledger, gateway] = JSON.parse(text) as [string[], string[]];
  expect(ledger).toEqual(
    expect.arrayContaining(["executePayment", "ledgerTableSql", "mintIntent"]),
  );
  expect(gateway).toEqual([
    ...["canonicalJson", "createGateway", "deterministicPaymentId", "gatewayTableSql"],
  ]);
});

test("behavior: nothing else of the package can be imported", async () => {
  const { code, text } = await evaluate(`await import("tallyd/dist/src/store/pool.js")`);
  expect(code).not.toBe(0);
  expect(text).toContain("ERR_PACKAGE_PATH_NOT_EXPORTED");
});

test("behavior: the README's examples have the right types", async () => {
  const [pay = "", buy = ""] = await examples("Pay so that there is nothing to find");
  const [sell = ""] = await examples("Sell so that nobody pays twice");
  expect([pay, buy, sell]).not.toContain("");
  const files = { "pay.ts": pay, "buy.ts": buy, "sell.ts": sell };
  expect(await check(files)).toEqual({ code: 0, text: "" });
});

test("error: types refuse what is wrong", async () => {
  const lines = [
    'import { createGateway } from "tallyd/gateway";',
    'import { executePayment } from "tallyd/ledger";',
    "createGateway({ pool: 1 });",
    "void executePayment({}, 7);",
  ];
  const { code, text } = await check({ "wrong.ts": lines.join("\n") });
  expect(code).not.toBe(0);
  expect(text).toMatch(/wrong\.ts\(3,\d+\): error TS2322/);
  expect(text).toMatch(/wrong\.ts\(4,\d+\): error TS/);
});

test("behavior: the command line runs from the package, its laboratory too", async () => {
  const bin = path.join(project, "node_modules", "tallyd", "dist", "src", "bin.js");
  const version = await mustRun(project, process.execPath, bin, "version");
  const { version: own } = JSON.parse(await readFile(path.join(ROOT, "package.json"), "utf8")) as {
    version: string;
  };
  expect(version).toContain(own);
  expect(await mustRun(project, process.execPath, bin, "lab", "--models")).toContain(
    "No counterexample.",
  );
});
