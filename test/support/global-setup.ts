import { chmod, mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";

import type { TestProject } from "vitest/node";

import { startEmbedded } from "../../src/store/embedded.ts";
import { migrate } from "../../src/store/migrate.ts";
import { openPool } from "../../src/store/pool.ts";
import { TEMPLATE_DATABASE } from "./template.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** URL of the one server of this run, database `postgres`; the role may do everything. */
    testServerUrl: string;
    /** Why there is no migrated template, empty when there is one. */
    testTemplateFault: string;
  }
}

// Data of a test run is thrown away, so nothing has to survive a crash; 200 connections serve
// every file's pools on the few workers that run at once.
const SERVER_SETTINGS = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  max_connections: "200",
  shared_buffers: "256MB",
  autovacuum: "off",
} as const;

/** Starts one PostgreSQL for the whole run and makes the migrated template; stops it at the end. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const dataDir = await mkdtemp(path.join(os.tmpdir(), "tallyd-test-"));
  // Run as root, the server has another user, who must be able to enter.
  await chmod(dataDir, 0o711);
  const server = await startEmbedded({ dataDir, settings: SERVER_SETTINGS, log: () => undefined });
  const serverUrl = withDatabase(server.url, "postgres");
  project.provide("testServerUrl", serverUrl);
  project.provide("testTemplateFault", await makeTemplate(serverUrl));
  return async () => {
    await server.stop();
    await rm(dataDir, { recursive: true, force: true });
  };
}

/** Returns the fault instead of throwing: tests that need no schema can still speak. */
async function makeTemplate(serverUrl: string): Promise<string> {
  const admin = openPool({ url: serverUrl, applicationName: "tallyd-test-setup", max: 1 });
  await admin.query(`create database ${TEMPLATE_DATABASE} template template0`);
  await admin.end();
  const url = withDatabase(serverUrl, TEMPLATE_DATABASE);
  const pool = openPool({ url, applicationName: "tallyd-test-setup", max: 2 });
  try {
    await migrate(pool);
    return "";
  } catch (error) {
    return String(error);
  } finally {
    await pool.end();
  }
}

function withDatabase(url: string, database: string): string {
  const changed = new URL(url);
  changed.pathname = `/${database}`;
  return changed.href;
}
