/**
 * Goal: over x402 an intent is paid at most once: one authorization is signed, stored before it is
 * sent, sent again as it is, and replaced only when the chain has proven it dead.
 * Method: the official resource server and facilitator, a real chain, a line that loses answers.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { nextStep } from "../../src/ledger/ledger.ts";
import type { ChainProvider, X402StepName } from "../../src/ledger/ledger.ts";
import { chainFault } from "../support/chain-world.ts";
import { PRICE } from "../support/x402/shop.ts";
import { refusalOf } from "./world.ts";
import { openX402LedgerWorld, providerOf } from "./x402-world.ts";
import type { X402LedgerWorld } from "./x402-world.ts";

const fault = await chainFault();

let world: X402LedgerWorld;
let before: { readonly transfers: number; readonly served: number; readonly sent: number };
let id = "";
let count = 0;

beforeAll(async () => {
  if (fault === "") world = await openX402LedgerWorld();
});
afterAll(async () => {
  if (fault === "") await world.close();
});
beforeEach(async () => {
  if (fault !== "") return;
  count += 1;
  id = `buy-${String(count)}`;
  await world.mint(id);
  const { served } = world.shop;
  before = { transfers: await world.transfers(), served: served(), sent: world.sent().length };
});
afterEach(async () => {
  if (fault !== "") return;
  await world.evm.chain.automine(true);
  world.shop.waitFor(10_000);
});

const paidTimes = async (): Promise<number> => (await world.transfers()) - before.transfers;
const nonces = (): readonly string[] =>
  world
    .sent()
    .slice(before.sent)
    .map((one) => one.payload.authorization.nonce);

/** The shop cannot be reached with a payment, only asked. */
const unreachable: typeof fetch = (input, init) =>
  new Headers(init?.headers).has("payment-signature")
    ? Promise.reject(new TypeError("fetch failed"))
    : fetch(input, init);

/** A shop that wants authorizations of this length, and cannot be reached with one. */
function demanding(maxTimeoutSeconds: number): typeof fetch {
  return async (input, init) => {
    const response = await unreachable(input, init);
    const text = Buffer.from(response.headers.get("payment-required") ?? "", "base64");
    const demand = JSON.parse(text.toString("utf8")) as { accepts: object[] };
    const accepts = demand.accepts.map((one) => ({ ...one, maxTimeoutSeconds }));
    const header = Buffer.from(JSON.stringify({ ...demand, accepts })).toString("base64");
    return new Response(null, { status: 402, headers: { "payment-required": header } });
  };
}

const crashAt = (at: X402StepName) => ({
  onStep: (step: X402StepName) => {
    if (step === at) throw new Error("killed");
  },
});

const MINUTES = 60;

describe.skipIf(fault !== "")("payX402", () => {
  it("default: paid once, the goods are kept and come again", async () => {
    const first = await world.pay(id);
    expect(first).toMatchObject({ state: "recorded", replayed: false });
    expect(first.response).toMatchObject({
      success: true,
      transaction: first.chargeId,
      http: { status: 200, body: expect.stringContaining("goods") as string },
    });
    expect(await world.pay(id)).toEqual({ ...first, replayed: true });
    expect(await paidTimes()).toBe(1);
    expect(world.shop.served() - before.served).toBe(1);
    const { columns, idempotencyKey } = await world.row(id);
    expect(columns).toMatchObject({ payer: world.evm.payer.address, nonce: nonces()[0] });
    expect(columns["payment_id"]).toBe(idempotencyKey);
    const [payment] = world.sent().slice(before.sent);
    expect(payment?.extensions?.["payment-identifier"]?.info.id).toBe(idempotencyKey);
  });

  it("behavior: a lost answer is found on the chain, and nothing is signed again", async () => {
    world.line.loseNext();
    const paid = await world.pay(id);
    expect(paid.chargeId).toMatch(/^0x[0-9a-f]{64}$/);
    expect(await paidTimes()).toBe(1);
    expect(new Set(nonces()).size).toBe(1);
  });

  it("behavior: ten at once sign once and send once", async () => {
    const all = await Promise.all(Array.from({ length: 10 }, () => world.pay(id, {}, 20_000)));
    expect(new Set(all.map((one) => JSON.stringify(one.response))).size).toBe(1);
    expect(nonces()).toHaveLength(1);
    expect(await paidTimes()).toBe(1);
    expect(world.shop.served() - before.served).toBe(1);
  });

  it("behavior: what to look up first is the nonce, as soon as there is one", async () => {
    expect(nextStep(await world.row(id))).toMatchObject({ do: "send_same_key" });
    await expect(world.pay(id, crashAt("signed"))).rejects.toThrow("killed");
    expect(nextStep(await world.row(id))).toMatchObject({ do: "wait" });
    await refusalOf(world.pay(id, {}));
    const { columns } = await world.row(id);
    const held = await world.row(id);
    const abandoned = nextStep({ ...held, sinceMs: 6 * MINUTES * 1_000 });
    expect(abandoned.do === "look_up" && abandoned.look.join()).toContain(
      `nonce ${String(columns["nonce"])} of ${world.evm.payer.address.toLowerCase()}`,
    );
    const unsigned = { ...held, columns: { ...columns, metadata: {} } };
    expect(nextStep({ ...unsigned, state: "reconciling" })).toMatchObject({ do: "stop" });
    const old = { ...unsigned, state: "key_minted", ageMs: 21 * 60 * MINUTES * 1_000 } as const;
    expect(nextStep(old)).toMatchObject({ do: "stop" });
  });

  it("behavior: what did not arrive is sent again as it was signed", async () => {
    expect(await refusalOf(world.pay(id, { fetch: unreachable }))).toMatchObject({
      code: "unknown",
    });
    const { nonce } = (await world.row(id)).columns;
    expect((await world.row(id)).state).toBe("reconciling");
    await world.pay(id);
    expect(nonces()).toEqual([nonce]);
    expect(await paidTimes()).toBe(1);
  });

  it("behavior: settlement pending is in doubt, and paid when it is mined", async () => {
    await world.evm.chain.automine(false);
    world.shop.waitFor(150);
    expect(await refusalOf(world.pay(id))).toMatchObject({ code: "unknown" });
    expect((await world.row(id)).state).toBe("reconciling");
    await world.evm.chain.mine(1);
    expect((await world.pay(id)).state).toBe("recorded");
    expect(new Set(nonces()).size).toBe(1);
    expect(await paidTimes()).toBe(1);
  });

  it("behavior: an authorization that was canceled is final", async () => {
    const { chain, token, payer } = world.evm;
    const cancel = async (step: X402StepName): Promise<void> => {
      if (step !== "signed") return;
      await chain.cancel(token, payer, (await world.row(id)).columns["nonce"] as `0x${string}`);
    };
    // A block that is not final may take it back.
    expect(await refusalOf(world.pay(id, { onStep: cancel }))).toMatchObject({ code: "unknown" });
    expect((await world.row(id)).state).toBe("reconciling");
    await chain.mine(6, 1);
    const refusal = await refusalOf(world.pay(id));
    expect(refusal).toMatchObject({ code: "failed", response: { error: { code: "canceled" } } });
    expect((await world.row(id)).state).toBe("failed_terminal");
    expect(await paidTimes()).toBe(0);
  });

  it("behavior: a new one is signed only when the old one is dead for good", async () => {
    await refusalOf(world.pay(id, { fetch: unreachable }));
    const { nonce: old } = (await world.row(id)).columns;
    await world.advance(10 * MINUTES);
    // Its time is over in the newest block, and not yet in a final one.
    expect(await refusalOf(world.pay(id))).toMatchObject({ code: "unknown" });
    expect(nonces()).toEqual([]);
    await world.evm.chain.mine(6, 1);
    expect((await world.pay(id)).state).toBe("recorded");
    expect(nonces()).toHaveLength(1);
    expect(nonces()[0]).not.toBe(old);
    expect(await paidTimes()).toBe(1);
  });

  it("behavior: it is dead only when every endpoint says so; one that saw it used is believed", async () => {
    const { evm } = world;
    await refusalOf(world.pay(id, { fetch: unreachable }));
    await world.advance(10 * MINUTES);
    await evm.chain.mine(6, 1);
    const good = providerOf(evm);
    const down: ChainProvider = { request: () => Promise.reject(new Error("out of reach")) };
    const odd: ChainProvider = {
      request: (call) => (call.method === "eth_call" ? Promise.resolve("0x") : good.request(call)),
    };
    const other: ChainProvider = {
      request: (call) =>
        call.method === "eth_chainId" ? Promise.resolve("0x1") : good.request(call),
    };
    for (const bad of [down, odd, other]) {
      const refusal = await refusalOf(world.pay(id, { chains: [good, bad] }));
      expect(refusal).toMatchObject({ code: "unknown" });
    }
    expect(nonces()).toEqual([]);
    expect((await world.row(id)).state).toBe("reconciling");
  });

  it("behavior: an endpoint that lags hides nothing from one that does not", async () => {
    const good = providerOf(world.evm);
    const unused = `0x${"0".repeat(64)}`;
    const lagging: ChainProvider = {
      request: (call) =>
        call.method === "eth_call" ? Promise.resolve(unused) : good.request(call),
    };
    world.line.loseNext();
    const paid = await world.pay(id, { chains: [lagging, good] });
    expect(paid.state).toBe("recorded");
    expect(await paidTimes()).toBe(1);
  });

  it.each<X402StepName>(["read", "asked", "admitted", "signed", "answered", "stored"])(
    "behavior: a crash after %s neither pays twice nor loses the payment",
    async (at) => {
      await expect(world.pay(id, crashAt(at))).rejects.toThrow("killed");
      await world.advance(6 * MINUTES);
      await world.evm.chain.mine(6, 1);
      expect((await world.pay(id)).state).toBe("recorded");
      expect(await paidTimes()).toBe(1);
    },
  );

  it.each<X402StepName>(["doubted", "looked"])(
    "behavior: a crash after %s, with the answer lost, pays once",
    async (at) => {
      world.line.loseNext();
      await expect(world.pay(id, crashAt(at))).rejects.toThrow("killed");
      expect((await world.row(id)).state).toBe("reconciling");
      expect((await world.pay(id)).state).toBe("recorded");
      expect(await paidTimes()).toBe(1);
      expect(new Set(nonces()).size).toBe(1);
    },
  );

  it("error: a price that is not the row's is not signed", async () => {
    await world.mint(`${id}-cheap`, PRICE - 1n);
    const refusal = await refusalOf(world.pay(`${id}-cheap`));
    expect(refusal).toMatchObject({ code: "conflict" });
    expect(refusal.message).toContain("nothing was signed");
    expect(await world.row(`${id}-cheap`)).toMatchObject({ state: "key_minted" });
  });

  it.each([1e300, 100_000_000, 90.5])(
    "behavior: a server that asks for %d seconds gets an hour at most, in whole seconds",
    async (maxTimeoutSeconds) => {
      await refusalOf(world.pay(id, { fetch: demanding(maxTimeoutSeconds) }));
      const { columns, now } = await world.row(id);
      const lifeS = Date.parse(String(columns["valid_before"])) / 1_000 - now;
      expect(lifeS).toBeLessThanOrEqual(Math.min(3_600, maxTimeoutSeconds) + 1);
      expect(lifeS).toBeGreaterThan(60);
    },
  );

  it("behavior: goods without end are paid, and not read to their end", async () => {
    let sent = 0;
    const endless = new ReadableStream({
      pull: (controller) => {
        sent += 1;
        controller.enqueue(new Uint8Array(1_048_576));
      },
    });
    const paid = await world.pay(id, {
      fetch: async (input, init) => {
        const answer = await world.deps.fetch(input, init);
        return answer.ok ? new Response(endless, { headers: answer.headers }) : answer;
      },
    });
    expect(paid.response["http"]).toMatchObject({ status: 200, body: null });
    expect(sent).toBeLessThan(10);
  });

  it("error: a signer that fails holds nobody up", async () => {
    const { address } = world.deps.signer;
    const signTypedData = () => Promise.reject(new Error("the wallet is locked"));
    const refusal = await refusalOf(world.pay(id, { signer: { address, signTypedData } }));
    expect(refusal).toMatchObject({ code: "retryable" });
    expect(refusal.message).toContain("the wallet is locked");
    expect((await world.pay(id)).state).toBe("recorded");
  });

  it("error: a server that cannot be asked", async () => {
    const refusal = await refusalOf(
      world.pay(id, { fetch: () => Promise.reject(new TypeError("fetch failed")) }),
    );
    expect(refusal).toMatchObject({ code: "retryable" });
    expect((await world.row(id)).state).toBe("key_minted");
  });
});
