/**
 * Goal: rows on chain are decided by what is final there, never by what a server answered.
 * Method: one situation per rule. Cases B34, B35, B39.
 */
import { describe, expect, test } from "vitest";

import { decideChain } from "../../../src/resolve/chain/decide-chain.ts";
import type { ChainIntent, ChainSituation } from "../../../src/resolve/chain/situation.ts";
import type { Decision } from "../../../src/resolve/decision.ts";
import { MINUTE, NOW, ago, charge, intent } from "../situations.ts";

const PAYER = `0x${"aa".repeat(20)}`;
const PAYEE = `0x${"bb".repeat(20)}`;
const USDC = `0x${"11".repeat(20)}`;
const HASH = `0x${"ab".repeat(32)}`;
const ID = `eip155:8453:${HASH}:4`;

function row(fields: Partial<ChainIntent> = {}): ChainIntent {
  return {
    ...intent({
      scope: "eip155:8453",
      amount: 10_000n,
      currency: "usdc",
      payee: PAYEE,
      asset: USDC,
    }),
    payer: PAYER,
    nonce: `0x${"01".repeat(32)}`,
    txHash: null,
    validBefore: ago(5 * MINUTE),
    ...fields,
  };
}

const own = charge({
  chargeId: ID,
  paymentIntent: HASH,
  amount: 10_000n,
  amountCaptured: 10_000n,
  net: 10_000n,
  currency: "usdc",
  payee: PAYEE,
  asset: USDC,
  basis: "nonce",
});

const block = { number: 900n, hash: HASH, time: ago(MINUTE) };

function situation(fields: Partial<ChainSituation> = {}): ChainSituation {
  return {
    intent: row(),
    charges: [],
    siblings: [],
    rivals: [],
    sharedNonce: [],
    alike: [],
    readTo: block,
    readFrom: ago(600 * MINUTE),
    nonce: { state: "unused", block, endpoints: 1 },
    transaction: null,
    ...fields,
  };
}

function kinds(decision: Decision): string {
  const detail = {
    record: () =>
      decision.kind === "record" && decision.onlySuggested === true ? " suggested" : "",
    fail_terminal: () => (decision.kind === "fail_terminal" ? ` ${decision.why}` : ""),
    fail_retryable: () => "",
    wait: () => (decision.kind === "wait" ? ` ${decision.on}` : ""),
    hold: () => (decision.kind === "hold" ? ` ${decision.code}` : ""),
    unproven: () =>
      decision.kind === "unproven" ? ` ${decision.missing.map((one) => one.what).join(",")}` : "",
  }[decision.kind]();
  return decision.kind + detail;
}

const pending = { ...own, status: "pending" as const, succeeded: false };
const elsewhere = {
  chargeId: "ch_9",
  intentId: "in_9",
  net: 5n,
  currency: "usd",
  createdAt: ago(1),
};

describe("decideChain", () => {
  test("default: used once, final, as meant: recorded with the mined hash (B35 a)", () => {
    const decision = decideChain(situation({ charges: [own], nonce: null }), NOW);
    expect(decision).toMatchObject({ kind: "record", charge: { chargeId: ID }, basis: "nonce" });
  });

  test.each<[string, Partial<ChainSituation>, string]>([
    ["unused after its end at a final block (B34)", {}, "fail_terminal expired"],
    [
      "the end is the first time that cannot settle",
      { intent: row({ validBefore: block.time }) },
      "fail_terminal expired",
    ],
    [
      "unused and still valid (B34)",
      { intent: row({ validBefore: ago(-MINUTE) }) },
      "wait provider",
    ],
    [
      "its end is over by the clock and not by the chain",
      { intent: row({ validBefore: ago(30_000) }) },
      "wait provider",
    ],
    ["unused and no end is known", { intent: row({ validBefore: null }) }, "unproven time"],
    [
      "canceled (B35 c)",
      { nonce: { state: "canceled", block, endpoints: 2 } },
      "fail_terminal canceled",
    ],
    [
      "canceled in flight",
      { intent: row({ state: "in_flight" }), nonce: { state: "canceled", block, endpoints: 1 } },
      "fail_terminal canceled",
    ],
    [
      "expired in flight is proven too",
      { intent: row({ state: "in_flight" }) },
      "fail_terminal expired",
    ],
    [
      "used without a transfer that is known",
      { nonce: { state: "used", block, endpoints: 1 } },
      "unproven mark",
    ],
    [
      "used for another row",
      {
        nonce: { state: "used", block, endpoints: 1 },
        sharedNonce: [{ intentId: "in_2", state: "recorded", chargeId: ID }],
      },
      "hold authorization_reuse",
    ],
    ["a nonce without its payer", { nonce: null }, "unproven mark"],
    ["mined and not final (B39)", { charges: [pending] }, "wait provider"],
    [
      "two transfers of its own",
      { charges: [own, { ...own, chargeId: `${ID}1` }] },
      "hold double_charge",
    ],
    [
      "paid, and its purchase by card too",
      { charges: [own], siblings: [elsewhere] },
      "hold double_charge",
    ],
    ["another payee (B35 e)", { charges: [{ ...own, payee: PAYER }] }, "hold amount_mismatch"],
    [
      "less than meant (B40)",
      { charges: [{ ...own, amount: 9_900n, amountCaptured: 9_900n }] },
      "hold amount_mismatch",
    ],
    [
      "another contract of the same symbol (B40)",
      { charges: [{ ...own, asset: PAYER }] },
      "hold amount_mismatch",
    ],
    ["the chain was never read", { readTo: null }, "unproven coverage"],
    ["recorded is never written", { intent: row({ state: "recorded" }) }, "hold state_drift"],
    ["failed, and nothing of it", { intent: row({ state: "failed_retryable" }) }, "wait holder"],
    ["failed, and paid", { intent: row({ state: "failed_retryable" }), charges: [own] }, "record"],
  ])("behavior: %s", (_, fields, expected) => {
    expect(kinds(decideChain(situation(fields), NOW))).toBe(expected);
  });

  const byHash = (status: string, fields: Partial<ChainIntent> = {}, final = true) => ({
    intent: row({ nonce: null, txHash: HASH, validBefore: null, ...fields }),
    nonce: null,
    transaction: { status, final } as ChainSituation["transaction"],
  });

  test.each<[string, Partial<ChainSituation>, string]>([
    ["reverted at finality", byHash("reverted"), "fail_terminal reverted"],
    ["reverted above finality", byHash("reverted", {}, false), "wait provider"],
    [
      "reverted while the authorization is valid",
      byHash("reverted", { validBefore: NOW }),
      "wait provider",
    ],
    ["in the mempool", byHash("pending", {}, false), "wait provider"],
    ["in no block", byHash("unknown", {}, false), "unproven id"],
    ["succeeded without a transfer of it", byHash("succeeded"), "unproven mark"],
    [
      "replaced, and one transfer looks like it",
      { ...byHash("unknown", {}, false), alike: [own] },
      "record suggested",
    ],
  ])("behavior: only a hash: %s", (_, fields, expected) => {
    expect(kinds(decideChain(situation(fields), NOW))).toBe(expected);
  });

  test.each<[string, Partial<ChainSituation>, string]>([
    ["one transfer looks like it", { alike: [own] }, "record suggested"],
    ["two look like it", { alike: [own, own] }, "unproven mark"],
    ["none does", {}, "unproven mark"],
  ])("behavior: neither nonce nor hash: %s", (_, fields, expected) => {
    const nameless = { intent: row({ nonce: null }), nonce: null, ...fields };
    expect(kinds(decideChain(situation(nameless), NOW))).toBe(expected);
  });

  test("behavior: a dead authorization whose purchase was paid otherwise asks for no new one", () => {
    const decision = decideChain(situation({ siblings: [elsewhere] }), NOW);
    expect(decision).toMatchObject({ kind: "fail_terminal", why: "expired" });
    expect(decision.kind === "fail_terminal" && decision.advice).toContain("neither retry");
  });
});
