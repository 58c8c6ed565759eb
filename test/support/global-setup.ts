import type { TestProject } from "vitest/node";

import { migrate } from "../../src/store/migrate.ts";
import { openPool } from "../../src/store/pool.ts";
import { SERVER_SETTING, ownName, testServer, withDatabase } from "./test-server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** URL of the one server of this run, database `postgres`; the role may do everything. */
    testServerUrl: string;
    /** Database with the migrated schema; nobody stays connected to it, so it can be copied. */
    testTemplate: string;
    /** How to copy it: by file takes half the time where the server can be asked for it. */
    testCopyOption: "" | "strategy file_copy";
    /** Why there is no migrated template, empty when there is one. */
    testTemplateFault: string;
  }
}

const STRATEGIES_SINCE = 150_000;

/** Takes one PostgreSQL for the whole run and makes the migrated template; cleans up at the end. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await testServer(process.env[SERVER_SETTING]);
  const template = ownName("tallyd_template");
  project.provide("testServerUrl", server.url);
  project.provide("testTemplate", template);
  project.provide("testCopyOption", await copyOption(server.url));
  project.provide("testTemplateFault", await makeTemplate(server.url, template));
  return async () => {
    await runOn(server.url, `drop database if exists ${template} with (force)`);
    await server.release();
  };
}

/** Returns the fault instead of throwing: tests that need no schema can still speak. */
async function makeTemplate(serverUrl: string, template: string): Promise<string> {
  await runOn(serverUrl, `create database ${template} template template0`);
  const url = withDatabase(serverUrl, template);
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

/** PostgreSQL 14 knows no strategies: it copies files. */
async function copyOption(serverUrl: string): Promise<"" | "strategy file_copy"> {
  const admin = openPool({ url: serverUrl, applicationName: "tallyd-test-setup", max: 1 });
  try {
    const found = await admin.query<{ version: number }>(
      "select current_setting('server_version_num')::int as version",
    );
    return (found.rows[0]?.version ?? 0) >= STRATEGIES_SINCE ? "strategy file_copy" : "";
  } finally {
    await admin.end();
  }
}

async function runOn(serverUrl: string, statement: string): Promise<void> {
  const admin = openPool({ url: serverUrl, applicationName: "tallyd-test-setup", max: 1 });
  try {
    await admin.query(statement);
  } finally {
    await admin.end();
  }
}
