/**
 * A payment tool for an agent, as an MCP server over standard input and output. The agent gives an
 * intent's id and nothing else: amount, payee and key were fixed when the intent was minted, so a
 * model that plans again, or calls twice, cannot change or repeat a payment.
 *
 *   DATABASE_URL=postgres://… STRIPE_SECRET_KEY=sk_test_… npx tsx mcp-payment-tool.ts
 *
 * Needs `tallyd`, `pg`, `stripe`, `zod` and `@modelcontextprotocol/sdk` 1.x.
 */
import { pathToFileURL } from "node:url";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import pg from "pg";
import Stripe from "stripe";
import { LedgerError, executePayment } from "tallyd/ledger";
import { z } from "zod";

// Another worker's payment takes about a second; an agent waits rather than plans around it.
const WAIT_MS = 10_000;

/** The server with its one tool; anything but an intent's id is refused before it is called. */
export function paymentServer(deps: { readonly db: pg.Pool; readonly stripe: Stripe }): McpServer {
  const server = new McpServer({ name: "payments", version: "1.0.0" });
  server.registerTool(
    "pay_intent",
    {
      title: "Pay a payment intent",
      description:
        "Pays an intent that the shop has minted. Safe to call again with the same id: money " +
        "moves at most once. Amount and payee cannot be given.",
      inputSchema: z.strictObject({ intent_id: z.string().min(1).max(255) }),
      annotations: { idempotentHint: true, destructiveHint: false, openWorldHint: true },
    },
    ({ intent_id }) => pay(deps, intent_id),
  );
  return server;
}

async function pay(
  { db, stripe }: { readonly db: pg.Pool; readonly stripe: Stripe },
  intentId: string,
): Promise<CallToolResult> {
  try {
    const payment = await executePayment({ db, stripe }, intentId, { waitMs: WAIT_MS });
    return answer({ status: "paid", intent_id: intentId, charge: payment.chargeId });
  } catch (error) {
    if (!(error instanceof LedgerError)) throw error;
    const { code, message, retryAfterMs } = error;
    const body = { status: code, intent_id: intentId, retry_after_ms: retryAfterMs, message };
    return { ...answer(body), isError: code === "failed" || code === "conflict" };
  }
}

function answer(body: object): CallToolResult {
  return { content: [{ type: "text", text: JSON.stringify(body) }] };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const { DATABASE_URL, STRIPE_SECRET_KEY } = process.env;
  if (DATABASE_URL === undefined || STRIPE_SECRET_KEY === undefined) {
    throw new Error("DATABASE_URL and STRIPE_SECRET_KEY are needed");
  }
  const db = new pg.Pool({ connectionString: DATABASE_URL });
  const stripe = new Stripe(STRIPE_SECRET_KEY);
  await paymentServer({ db, stripe }).connect(new StdioServerTransport());
}
