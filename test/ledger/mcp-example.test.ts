/** Goal: the example of an agent's tool works with the official MCP client, and takes no more. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";

import { paymentServer } from "../../deploy/examples/mcp-payment-tool.ts";
import { clientOf } from "./client.ts";
import { openLedgerWorld } from "./world.ts";
import type { LedgerWorld } from "./world.ts";

let world: LedgerWorld;
let client: Client;

beforeAll(async () => {
  world = await openLedgerWorld();
});
beforeEach(async () => {
  await world.fresh("own");
  const server = paymentServer({ db: world.pool, stripe: clientOf(world.stripe.url) });
  client = new Client({ name: "agent", version: "1.0.0" });
  const [here, there] = InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(there), client.connect(here)]);
});
afterAll(() => world.close());

async function pay(args: Readonly<Record<string, unknown>>) {
  const result = await client.callTool({ name: "pay_intent", arguments: { ...args } });
  const [content] = result.content as { text: string }[];
  return { isError: result.isError === true, text: content?.text ?? "" };
}

it("default: the tool takes an intent's id and nothing else", async () => {
  const { tools } = await client.listTools();
  expect(tools.map((tool) => tool.name)).toEqual(["pay_intent"]);
  expect(tools[0]?.inputSchema).toMatchObject({
    required: ["intent_id"],
    additionalProperties: false,
  });
  expect(Object.keys(tools[0]?.inputSchema.properties ?? {})).toEqual(["intent_id"]);
  await world.mint("L1");
  expect(await pay({ intent_id: "L1", amount: 1 })).toMatchObject({ isError: true });
  expect(await world.charges()).toEqual([]);
});

it("behavior: calls at once and again pay once and answer alike", async () => {
  await world.mint("L1");
  const [first, second] = await Promise.all([pay({ intent_id: "L1" }), pay({ intent_id: "L1" })]);
  expect(JSON.parse(first.text)).toMatchObject({ status: "paid", intent_id: "L1" });
  expect(second).toEqual(first);
  expect(await pay({ intent_id: "L1" })).toEqual(first);
  expect(await world.charges()).toHaveLength(1);
});

it("error: an unknown intent is told and nothing is sent", async () => {
  expect(JSON.parse((await pay({ intent_id: "nobody" })).text)).toMatchObject({
    status: "not_found",
  });
  expect(await world.charges()).toEqual([]);
});
