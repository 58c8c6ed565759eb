/** Everything the demo plays on: a database, the stand-ins, and the real daemon. */
import { rm } from "node:fs/promises";
import path from "node:path";

import type { Pool } from "pg";

import { ChainUnavailableError } from "../sandbox/chain/anvil.ts";
import { startSlackSandbox } from "../sandbox/slack/server.ts";
import type { SlackSandbox } from "../sandbox/slack/server.ts";
import { startStripeSandbox } from "../sandbox/stripe/server.ts";
import type { StripeSandbox } from "../sandbox/stripe/server.ts";
import { createOwnTable } from "../sources/local/own-table.ts";
import { startEmbedded } from "../store/embedded.ts";
import { openPool } from "../store/pool.ts";
import { openChainStage } from "./chain-stage.ts";
import type { ChainStage } from "./chain-stage.ts";
import { freePort, startDaemon } from "./daemon-process.ts";
import type { DaemonProcess } from "./daemon-process.ts";
import { openLossyLine } from "./lossy-line.ts";

/** Keys of the stand-in; the daemon's can only read. */
export const AGENT_KEY = "sk_test_demo_agent_key";
const DAEMON_KEY = "rk_test_demo_daemon_key";
const WEBHOOK_SECRET = "whsec_demo_0123456789abcdef";

export interface Stage {
  readonly pool: Pool;
  readonly sandbox: StripeSandbox;
  readonly slack: SlackSandbox;
  /** Stripe behind a line that loses every answer. */
  readonly lossyUrl: string;
  /** `null`: there is no chain for this machine, which was told. */
  readonly chain: ChainStage | null;
  readonly daemon: DaemonProcess;
  readonly adminUrl: string;
  /** The settings with which further commands see the same world, to be shown to a person. */
  readonly env: Readonly<Record<string, string>>;
  readonly close: () => Promise<void>;
}

// The daemon's waits, shortened so that a demo of a minute sees their end. Everything else is as
// in production.
const SHORT_WAITS: Readonly<Record<string, string>> = {
  ORPHAN_GRACE: "4s",
  IN_FLIGHT_LIMIT: "8s",
  ATTEMPT_WINDOW: "3s",
  SAFETY_LAG: "1s",
  CLOCK_SLACK: "2s",
  LADDER_STRIPE: "2s,5s,10s,20s,40s",
  LADDER_EVM: "1s,3s,6s,12s,30s",
  CHAINS_BEAT: "1s",
  LOCAL_BEAT: "1s",
  EVENTS_BEAT: "5s",
  LISTS_BEAT: "5s",
  STRIPE_READS_PER_SECOND: "0",
};

/**
 * Builds the stage below `dataDir`, starting afresh. `inherited` is the environment that the daemon
 * gets besides its settings (PATH and the like).
 */
export async function openStage(input: {
  readonly dataDir: string;
  readonly inherited: Readonly<Record<string, string>>;
  readonly tell: (line: string) => void;
}): Promise<Stage> {
  const dataDir = path.join(input.dataDir, "demo");
  await rm(dataDir, { recursive: true, force: true });
  const closers: (() => Promise<unknown>)[] = [];
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).reverse()) await closer().catch(() => undefined);
  };
  try {
    input.tell("starting PostgreSQL (embedded) ...");
    const server = await startEmbedded({ dataDir, log: () => undefined });
    closers.push(() => server.stop());
    const pool = openPool({ url: server.url, applicationName: "tallyd-demo", max: 12 });
    closers.push(() => pool.end());
    await createOwnTable(pool, "public.payment_intents");
    input.tell("starting the stand-ins for Stripe and Slack ...");
    const sandbox = await startStripeSandbox({ settings: { retryScheduleMs: [500, 2_000] } });
    closers.push(() => sandbox.close());
    const slack = await startSlackSandbox({ limited: true });
    closers.push(() => slack.close());
    const line = await openLossyLine(sandbox.url);
    closers.push(() => line.close());
    const chain = await chainOrNull(input.tell);
    if (chain !== null) closers.push(() => chain.close());
    const [port, adminPort] = [await freePort(), await freePort()];
    sandbox.control.addEndpoint({
      url: `http://127.0.0.1:${String(port)}/webhooks/stripe`,
      secrets: [WEBHOOK_SECRET],
    });
    const env = {
      DATABASE_URL: server.url,
      STRIPE_API_KEY: DAEMON_KEY,
      STRIPE_API_BASE: sandbox.url,
      STRIPE_WEBHOOK_SECRET: WEBHOOK_SECRET,
      SLACK_WEBHOOK_URL: slack.webhookUrl,
      HOST: "127.0.0.1",
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
      ...(chain === null ? {} : { EVM_CHAINS: chain.settings }),
      ...SHORT_WAITS,
    };
    input.tell("starting the daemon (tallyd run) ...");
    const daemon = await startDaemon({
      env: { ...input.inherited, ...env },
      adminPort,
      logFile: path.join(dataDir, "daemon.log"),
    });
    closers.push(() => daemon.stop());
    const adminUrl = `http://127.0.0.1:${String(adminPort)}`;
    return { pool, sandbox, slack, lossyUrl: line.url, chain, daemon, adminUrl, env, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function chainOrNull(tell: (line: string) => void): Promise<ChainStage | null> {
  try {
    tell("starting a chain (anvil) ...");
    return await openChainStage();
  } catch (error) {
    if (!(error instanceof ChainUnavailableError)) throw error;
    tell(`THE CHAIN ACT IS LEFT OUT: ${error.message}`);
    return null;
  }
}
