// Goal: one server for one data folder, whatever dies and whoever comes when.
// Method: real servers in folders of their own, real processes that are really killed.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdir, mkdtemp, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";

import { readPostmasterFile, servesFolder } from "../../src/store/embedded-process.ts";
import { startEmbedded } from "../../src/store/embedded.ts";
import type { Embedded } from "../../src/store/embedded.ts";
import { EmbeddedError } from "../../src/store/errors.ts";

const HOLDER = fileURLToPath(new URL("../support/hold-embedded.ts", import.meta.url));
// Each test starts real servers, and some of them several times.
vi.setConfig({ testTimeout: 60_000 });

const isRoot = process.geteuid?.() === 0;

let seedDir: string;
let dataDir: string;
let held: Embedded[];
let lines: string[];

beforeAll(async () => {
  seedDir = await mkdtemp(path.join(os.tmpdir(), "tallyd-seed-"));
  await chmod(seedDir, 0o711);
  const one = await startEmbedded({
    dataDir: seedDir,
    settings: { fsync: "off" },
    log: () => undefined,
  });
  await one.stop();
});
afterAll(() => rm(seedDir, { recursive: true }));

beforeEach(async () => {
  dataDir = await mkdtemp(path.join(os.tmpdir(), "tallyd-embedded-"));
  await chmod(dataDir, 0o711);
  held = [];
  lines = [];
});
afterEach(async () => {
  await Promise.all(held.map((one) => one.stop()));
  await rm(dataDir, { recursive: true });
});

async function start(folder = dataDir): Promise<Embedded> {
  const one = await startEmbedded({
    dataDir: folder,
    settings: { fsync: "off" },
    log: (line) => lines.push(line),
  });
  held.push(one);
  return one;
}

/** Puts a copy of a stopped cluster there, which is several times faster than a new one. */
function seed(folder = dataDir): void {
  execFileSync("cp", ["-a", path.join(seedDir, "postgres"), folder]);
}

async function ask(embedded: Embedded, statement: string): Promise<unknown> {
  const client = new pg.Client({ connectionString: embedded.url });
  await client.connect();
  try {
    const found = await client.query<{ value: unknown }>(statement);
    return found.rows[0]?.value;
  } finally {
    await client.end();
  }
}

function dataFolder(): string {
  return path.join(dataDir, "postgres", "data");
}

async function serverPid(): Promise<number | undefined> {
  const file = await readPostmasterFile(dataFolder());
  if (file === undefined) return undefined;
  return (await servesFolder(file.pid, dataFolder())) ? file.pid : undefined;
}

describe("startEmbedded", () => {
  test("default", async () => {
    const first = await start();
    expect(await ask(first, "select current_database() as value")).toBe("tallyd");
    expect(await ask(first, "select current_setting('server_encoding') as value")).toBe("UTF8");
    expect(await ask(first, "select current_setting('listen_addresses') as value")).toBe(
      "127.0.0.1",
    );
    await ask(first, "create table kept as select 7 as value");
    const { port } = new URL(first.url);
    await first.stop();
    expect(await serverPid()).toBeUndefined();
    const again = await start();
    expect(new URL(again.url).port).toBe(port);
    expect(await ask(again, "select value from kept")).toBe(7);
  });

  test("behavior: the password lies beside the data, readable by its owner alone", async () => {
    seed();
    const one = await start();
    const file = path.join(dataDir, "postgres", "password");
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await readFile(file, "utf8")).trim()).toBe(new URL(one.url).password);
    const wrong = new URL(one.url);
    wrong.password = "wrong";
    await expect(ask({ ...one, url: wrong.href }, "select 1")).rejects.toThrow("password");
  });

  test("behavior: of several holders at once one starts it and the last one stops it", async () => {
    const all = await Promise.all([start(), start(), start()]);
    expect(new Set(all.map((one) => one.url)).size).toBe(1);
    await all[0].stop();
    await all[1].stop();
    expect(await ask(all[2], "select 1 as value")).toBe(1);
    await all[2].stop();
    expect(await serverPid()).toBeUndefined();
  });

  test("behavior: the server of a killed process is joined, then stopped", async () => {
    seed();
    const child = spawn(process.execPath, ["--import", "tsx", HOLDER, dataDir]);
    await once(child.stdout, "data");
    const pid = await serverPid();
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(await serverPid()).toBe(pid);
    const one = await start();
    expect(await serverPid()).toBe(pid);
    await one.stop();
    expect(await serverPid()).toBeUndefined();
  });

  test("behavior: a postmaster.pid whose number belongs to another process is stale", async () => {
    seed();
    const text = [process.pid, dataFolder(), 1, 1, "", "127.0.0.1", "", "ready   ", ""].join("\n");
    await writeFile(path.join(dataFolder(), "postmaster.pid"), text);
    const one = await start();
    expect(await ask(one, "select 1 as value")).toBe(1);
    expect(lines.join("\n")).toContain("removing postmaster.pid");
  });

  test("behavior: a server that dies under its holder comes back on its port", async () => {
    seed();
    const one = await start();
    process.kill((await serverPid()) ?? 0, "SIGKILL");
    await expect
      .poll(() => ask(one, "select 1 as value").catch(String), { timeout: 15_000 })
      .toBe(1);
    await one.stop();
    expect(await serverPid()).toBeUndefined();
  });

  test("behavior: what a killed initdb left is removed, a running one is left alone", async () => {
    const abandoned = path.join(dataDir, "postgres.preparing-old");
    const running = path.join(dataDir, "postgres.preparing-new");
    await mkdir(path.join(abandoned, "data"), { recursive: true });
    await mkdir(path.join(running, "data"), { recursive: true });
    await utimes(abandoned, 1_000_000, 1_000_000);
    await start();
    expect(existsSync(abandoned)).toBe(false);
    expect(existsSync(running)).toBe(true);
  });

  test.runIf(isRoot)("behavior: a folder that only root may enter", async () => {
    const hidden = path.join(dataDir, "hidden");
    await mkdir(hidden, { mode: 0o700 });
    const one = await start(path.join(hidden, "data"));
    expect(await ask(one, "select 1 as value")).toBe(1);
    expect(lines.join("\n")).toContain("the database is kept in /var/lib/tallyd/");
    const note = path.join(hidden, "data", "postgres-location");
    const elsewhere = (await readFile(note, "utf8")).trim();
    const again = await start(path.join(hidden, "data"));
    expect(again.url).toBe(one.url);
    await one.stop();
    await again.stop();
    await rm(path.dirname(elsewhere), { recursive: true });
  });

  test.runIf(isRoot)("error: a database that was made unreachable is not replaced", async () => {
    const folder = path.join(dataDir, "later");
    await mkdir(folder, { mode: 0o711 });
    seed(folder);
    await chmod(folder, 0o700);
    await expect(start(folder)).rejects.toThrow("can no longer enter");
  });

  test("error: data of another major version", async () => {
    seed();
    await writeFile(path.join(dataFolder(), "PG_VERSION"), "17\n");
    const refused = start();
    await expect(refused).rejects.toBeInstanceOf(EmbeddedError);
    await expect(refused).rejects.toThrow("was written by PostgreSQL 17");
  });

  test("error: a lost or wrong password file", async () => {
    seed();
    const one = await start();
    const file = path.join(dataDir, "postgres", "password");
    const kept = await readFile(file, "utf8");
    await writeFile(file, "forged\n");
    await expect(start()).rejects.toThrow("refuses the password");
    await rm(file);
    await expect(start()).rejects.toThrow("password cannot be read");
    await writeFile(file, kept);
    await one.stop();
  });

  test("error: a server that cannot start says why", async () => {
    seed();
    const refused = startEmbedded({
      dataDir,
      settings: { no_such_setting: "1" },
      log: () => undefined,
    });
    await expect(refused).rejects.toThrow("unrecognized configuration parameter");
  });
});
