/**
 * Goal: rows on chain have one spelling, whatever the writer's.
 * Method: one field in many spellings; the chain is configured and never asked.
 */
import { describe, expect, test } from "vitest";

import { chainChargeId, parseChainCharge } from "../../../src/core/chain.ts";
import { canonicalChainFields } from "../../../src/sources/local/chain-row.ts";
import { challengeMarks } from "../../../src/sources/local/challenge.ts";
import { BRIDGED, CHAIN, PAYER, USDC, chainSettings } from "../../support/chain-rows.ts";

const HASH = `0x${"ab".repeat(32)}`;
const ROW = {
  scope: CHAIN,
  currency: "usdc",
  chargeId: null,
  network: "base",
  asset: null,
  payer: null,
  payee: null,
  nonce: null,
  paymentId: null,
  challengeNonce: null,
  challengeMemo: null,
};

function canonical(
  fields: Partial<Record<keyof typeof ROW, string>>,
  response: string | null = null,
) {
  return canonicalChainFields({ ...ROW, ...fields }, { chains: [chainSettings()], response });
}

describe("canonicalChainFields", () => {
  test("default: the network is the scope", () => {
    expect(canonical({})).toEqual({ ...ROW, network: CHAIN });
  });

  test.each([
    ["upper case", "AB".repeat(32)],
    ["0X", `0X${"ab".repeat(32)}`],
    ["mixed case", `0x${"aB".repeat(32)}`],
  ])("behavior: a nonce and a hash in %s", (_, text) => {
    expect(canonical({ nonce: text, chargeId: text })).toMatchObject({
      nonce: HASH,
      chargeId: HASH,
    });
  });

  test.each([
    `${HASH}:7`,
    `${HASH}#7`,
    `${HASH}#0x7`,
    `${HASH}:log:7`,
    `${CHAIN}:${HASH}:7`,
    `EIP155:8453:${HASH.toUpperCase().replace("0X", "0x")}:7`,
  ])("behavior: a hash with its log index: %s", (text) => {
    expect(canonical({ chargeId: text }).chargeId).toBe(chainChargeId(CHAIN, HASH, 7));
  });

  test.each([
    ["an address", { asset: USDC.toUpperCase() }, USDC, "usdc"],
    ["a CAIP-19 id", { asset: `${CHAIN}/erc20:${USDC}` }, USDC, "usdc"],
    ["a symbol", { asset: "USDC", currency: "usd" }, USDC, "usdc"],
    ["an address as the currency", { currency: BRIDGED }, BRIDGED, "usdbc"],
    ["a symbol as the currency names no contract", { currency: "usdc" }, null, "usdc"],
    ["an unknown token keeps the row's word", { asset: PAYER, currency: "xyz" }, PAYER, "xyz"],
  ])("behavior: the token by %s", (_, fields, asset, currency) => {
    expect(canonical(fields)).toMatchObject({ asset, currency });
  });

  test("behavior: the hash in an answer that was an error is still the payment's (B34)", () => {
    const pending = JSON.stringify({
      success: false,
      errorReason: "settlement_pending",
      transaction: HASH,
    });
    expect(canonical({}, pending).chargeId).toBe(HASH);
    expect(canonical({ chargeId: `${HASH}:2` }, pending).chargeId).toBe(
      chainChargeId(CHAIN, HASH, 2),
    );
    expect(canonical({}, '{"transaction":""}').chargeId).toBeNull();
    expect(canonical({}, "no JSON").chargeId).toBeNull();
  });

  test("behavior: a challenge marks a row only where the realm is configured", () => {
    const mpp = chainSettings({ mpp: { realm: "api.example.com" } });
    const row = canonicalChainFields(
      { ...ROW, paymentId: "c1" },
      { chains: [mpp], response: null },
    );
    expect(row.challengeNonce).toBe(challengeMarks("c1", "api.example.com").nonce);
    expect(canonical({ paymentId: "c1" }).challengeNonce).toBeNull();
  });

  test.each(["", "0x12", `${HASH}f`, `${HASH}:x`, "ch_1"])("error: %s is no charge", (text) => {
    expect(parseChainCharge(text)).toBeNull();
  });
});

test("default: the marks of a challenge are those that mppx 0.11.0 makes", () => {
  // Recorded from its challengeHash (evm) and Attribution.encode (tempo, client "x").
  const memo = "0xef1ed71201f3e9588ecb0548d566647521d1cadbcfa91eec65fb7b462cdb75a3";
  expect(challengeMarks("ch_abc", "api.example")).toEqual({
    nonce: "0x6bd1d1ab846f8c21f389e54ca7f240808f67e3335b76c3d5a14cc6c144e91342",
    memo: memo.slice(0, 32) + memo.slice(-14),
  });
});
