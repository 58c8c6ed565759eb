/**
 * Goal: every way in which a call can end, by the official SDK over real HTTP, leaves the row in
 * the one state that is true.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

import type { Fault } from "../../src/sandbox/stripe/faults.ts";
import { clientOf } from "./client.ts";
import { openLedgerWorld, refusalOf } from "./world.ts";
import type { LedgerWorld } from "./world.ts";

let world: LedgerWorld;

beforeAll(async () => {
  world = await openLedgerWorld();
});
afterAll(() => world.close());
beforeEach(() => world.fresh("own"));

interface Ending {
  readonly name: string;
  readonly faults: readonly Fault[];
  readonly state: string;
  readonly code: string;
  /** How much was charged in the end, before any retry. */
  readonly charged: number;
}

const conflict = {
  error: { type: "invalid_request_error", code: "idempotency_key_in_use", message: "in use" },
};
const mismatch = { error: { type: "idempotency_error", message: "other parameters" } };

const ENDINGS: readonly Ending[] = [
  {
    name: "429",
    faults: [{ kind: "rate_limit" }],
    state: "failed_retryable",
    code: "retryable",
    charged: 0,
  },
  {
    name: "429 of a lock",
    faults: [{ kind: "lock_timeout" }],
    state: "failed_retryable",
    code: "retryable",
    charged: 0,
  },
  {
    name: "401",
    faults: [
      {
        kind: "respond",
        status: 401,
        body: { error: { type: "invalid_request_error", message: "no key" } },
      },
    ],
    state: "failed_retryable",
    code: "retryable",
    charged: 0,
  },
  {
    name: "403",
    faults: [
      {
        kind: "respond",
        status: 403,
        body: { error: { type: "invalid_request_error", message: "no right" } },
      },
    ],
    state: "failed_retryable",
    code: "retryable",
    charged: 0,
  },
  {
    name: "400 of a parameter",
    faults: [
      {
        kind: "respond",
        status: 400,
        body: {
          error: { type: "invalid_request_error", param: "currency", message: "Invalid currency" },
        },
      },
    ],
    state: "failed_terminal",
    code: "failed",
    charged: 0,
  },
  {
    name: "409",
    faults: [{ kind: "respond", status: 409, body: conflict }],
    state: "reconciling",
    code: "unknown",
    charged: 0,
  },
  {
    name: "400 of another use of the key",
    faults: [{ kind: "respond", status: 400, body: mismatch }],
    state: "reconciling",
    code: "unknown",
    charged: 0,
  },
  {
    name: "500 before it ran",
    faults: [{ kind: "error_before" }],
    state: "reconciling",
    code: "unknown",
    charged: 0,
  },
  {
    name: "500 after it ran",
    faults: [{ kind: "error_after" }],
    state: "reconciling",
    code: "unknown",
    charged: 1,
  },
  {
    name: "503",
    faults: [{ kind: "error_before", status: 503 }],
    state: "reconciling",
    code: "unknown",
    charged: 0,
  },
  {
    name: "a lost answer",
    faults: [{ kind: "lost_response", count: 2 }],
    state: "reconciling",
    code: "unknown",
    charged: 1,
  },
  {
    name: "a cut body",
    faults: [{ kind: "cut_body", count: 2 }],
    state: "reconciling",
    code: "unknown",
    charged: 1,
  },
  {
    name: "a proxy's page",
    faults: [{ kind: "respond", status: 200, body: "<html>" }],
    state: "reconciling",
    code: "unknown",
    charged: 0,
  },
  // The SDK tries a closed connection again by itself: its error tells of the second attempt only.
  {
    name: "a lost answer, then 429",
    faults: [{ kind: "lost_response" }, { kind: "rate_limit", nth: 2 }],
    state: "reconciling",
    code: "unknown",
    charged: 1,
  },
  {
    name: "a lost answer, then 401",
    faults: [{ kind: "lost_response" }, { kind: "respond", nth: 2, status: 401, body: conflict }],
    state: "reconciling",
    code: "unknown",
    charged: 1,
  },
  {
    name: "a lost answer, then 400",
    faults: [
      { kind: "lost_response" },
      {
        kind: "respond",
        nth: 2,
        status: 400,
        body: { error: { type: "invalid_request_error", message: "x" } },
      },
    ],
    state: "reconciling",
    code: "unknown",
    charged: 1,
  },
];

describe("outcomes", () => {
  it("default: an answer is recorded, without secrets", async () => {
    await world.mint("inv-1", { customer: await customer(), reference: "order-7" });
    const paid = await world.pay("inv-1");
    const row = await world.row("inv-1");
    expect(row).toMatchObject({ state: "recorded", chargeId: paid.chargeId });
    expect(row.response).toEqual(paid.response);
    expect(paid.response).toMatchObject({
      object: "payment_intent",
      status: "succeeded",
      amount: 500,
    });
    expect(JSON.stringify(row.response)).not.toMatch(/secret|@/);
    const [made] = (await client().paymentIntents.list()).data;
    expect(made?.metadata).toEqual({ intent_id: "inv-1", reference: "order-7" });
  });

  it.each(ENDINGS)("behavior: $name is $state", async ({ faults, state, code, charged }) => {
    await world.mint("inv-1");
    for (const fault of faults) world.fault(fault);
    world.blind();
    const refusal = await refusalOf(world.pay("inv-1"));
    expect(refusal).toMatchObject({ code, intentId: "inv-1" });
    expect((await world.row("inv-1")).state).toBe(state);
    world.stripe.control.clearFaults();
    expect(await world.charges()).toHaveLength(charged);
    if (state === "failed_terminal") return;
    // Whatever it was: in the end there is one charge, by one key.
    world.advance(7 * 60_000);
    expect((await world.pay("inv-1")).state).toBe("recorded");
    expect(await world.charges()).toEqual(["500 usd"]);
    expect(new Set(world.keysSent()).size).toBe(1);
  });

  it.each([400, 409])(
    "behavior: a key in use (%i) is in doubt, although nothing is there yet",
    async (status) => {
      await world.mint("inv-1");
      world.fault({ kind: "respond", status, body: conflict });
      expect(await refusalOf(world.pay("inv-1"))).toMatchObject({ code: "unknown" });
      expect((await world.row("inv-1")).state).toBe("reconciling");
    },
  );

  it("behavior: a connection that was refused means that nothing ran", async () => {
    await world.mint("inv-1");
    const nowhere = await closedPort();
    const stripe = clientOf(nowhere);
    const refusal = await refusalOf(world.pay("inv-1", { stripe }));
    expect(refusal.code).toBe("retryable");
    expect((await world.row("inv-1")).state).toBe("failed_retryable");
  });

  it("behavior: a time-out is unknown, whatever comes of it", async () => {
    await world.mint("inv-1");
    world.fault({ kind: "delay", delayMs: 400 });
    world.blind();
    const limits = { timeoutMs: 100 };
    expect(await refusalOf(world.pay("inv-1", { limits }))).toMatchObject({ code: "unknown" });
    expect((await world.row("inv-1")).state).toBe("reconciling");
    await expect.poll(() => world.charges()).toHaveLength(1);
    expect((await world.pay("inv-1")).state).toBe("recorded");
    expect(world.keysSent()).toHaveLength(1);
  });

  it("behavior: a saved 500 of a payment that exists is found, not tried for ever", async () => {
    await world.mint("inv-1");
    world.fault({ kind: "error_after" });
    expect((await world.pay("inv-1")).state).toBe("recorded");
    expect(await world.charges()).toHaveLength(1);
  });

  it("behavior: what the SDK cannot encode was never sent", async () => {
    await world.mint("inv-1");
    const stripe = client();
    stripe.paymentIntents.create = () => Promise.reject(new TypeError("cannot encode"));
    expect(await refusalOf(world.pay("inv-1", { stripe }))).toMatchObject({ code: "retryable" });
  });

  it("behavior: an authentication that is asked for is pending, then recorded", async () => {
    await world.mint("inv-1", { request: { payment_method: "pm_card_authenticationRequired" } });
    const first = await refusalOf(world.pay("inv-1"));
    expect(first).toMatchObject({ code: "pending", response: { status: "requires_action" } });
    const row = await world.row("inv-1");
    expect(row).toMatchObject({ state: "in_flight", chargeId: first.response?.["id"] });
    expect(await refusalOf(world.pay("inv-1"))).toMatchObject({ code: "pending" });
    expect((await world.row("inv-1")).version).toBe(row.version);
    await client().paymentIntents.cancel(row.chargeId!);
    expect(await refusalOf(world.pay("inv-1"))).toMatchObject({ code: "unknown" });
    world.advance(7 * 60_000);
    expect(await refusalOf(world.pay("inv-1"))).toMatchObject({ code: "failed" });
    expect(world.keysSent().filter((key) => key === row.idempotencyKey)).toHaveLength(1);
  });

  it("behavior: a bank debit is pending for days, then recorded", async () => {
    const debit = { payment_method: "pm_usBankAccount_success" };
    await world.mint("inv-1", { request: debit });
    const first = await refusalOf(world.pay("inv-1"));
    expect(first).toMatchObject({ code: "pending", response: { status: "processing" } });
    world.advance(3 * 24 * 3_600_000);
    expect(await refusalOf(world.pay("inv-1"))).toMatchObject({ code: "pending" });
    world.stripe.control.settle(first.response?.["id"] as string, "succeeded");
    expect((await world.pay("inv-1")).state).toBe("recorded");
    expect(world.keysSent()).toHaveLength(1);
  });

  it("behavior: a payment that says something else than the row is never recorded", async () => {
    await world.mint("inv-1");
    world.fault({ kind: "lost_response", count: 2 });
    world.blind();
    await refusalOf(world.pay("inv-1"));
    await world.pool.query("update payment_intents set amount = 700, fingerprint = null");
    expect(await refusalOf(world.pay("inv-1"))).toMatchObject({ code: "conflict" });
    expect((await world.row("inv-1")).state).toBe("reconciling");
  });

  it("behavior: a connected account is paid and looked up as itself, a name of the team's is not", async () => {
    const accounts = ["acct_1Connected"];
    await world.mint("inv-1", { accountId: "acct_1Connected" });
    await world.mint("inv-2", { accountId: "acct_1Unlisted" });
    world.fault({ kind: "lost_response", count: 2 });
    await world.pay("inv-1", { accounts });
    const asked = world.stripe.control.requests.map(({ method, account }) => [method, account]);
    expect(new Set(asked.map(([method]) => method))).toEqual(new Set(["POST", "GET"]));
    expect(new Set(asked.map(([, account]) => account))).toEqual(new Set(accounts));
    await world.pay("inv-2", { accounts });
    expect(world.stripe.control.requests.at(-1)?.account).toBe("acct_1SandboxPlatform");
  });

  it("error: a second opinion about what the row says already", async () => {
    const request = { payment_method: "pm_card_visa", customer: "cus_2" };
    await world.mint("inv-1", { customer: "cus_1", request });
    await world.mint("inv-2", { request: { amount: 1, confirm: false } });
    const refusals = [await refusalOf(world.pay("inv-1")), await refusalOf(world.pay("inv-2"))];
    expect(refusals).toMatchObject([{ code: "invalid" }, { code: "invalid" }]);
    expect(refusals.map(({ message }) => message)).toEqual([
      expect.stringContaining("say customer,"),
      expect.stringContaining("say amount, confirm,"),
    ]);
    expect(world.keysSent()).toEqual([]);
  });

  it("error: an intent of another rail", async () => {
    const columns = { rail: "evm", network: "eip155:1", asset: "0x1", payee: "0x2" };
    await world.mint("inv-1", { columns });
    expect(await refusalOf(world.pay("inv-1"))).toMatchObject({ code: "invalid" });
    expect(world.keysSent()).toEqual([]);
  });

  it("behavior: two payments of one intent are for a person", async () => {
    await world.mint("inv-1");
    world.fault({ kind: "lost_response", count: 2 });
    world.blind();
    await refusalOf(world.pay("inv-1"));
    await client().paymentIntents.create({
      ...{ amount: 500, currency: "usd", payment_method: "pm_card_visa", confirm: true },
      metadata: { intent_id: "inv-1" },
    });
    const refusal = await refusalOf(world.pay("inv-1"));
    expect(refusal).toMatchObject({ code: "conflict" });
    expect(refusal.message).toContain("2 payments");
  });
});

const client = () => clientOf(world.stripe.url);

async function customer(): Promise<string> {
  return (await client().customers.create({ email: "someone@example.com" })).id;
}

/** An address where nobody listens. */
async function closedPort(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${String(port)}`;
}
