/**
 * Goal: spellings of a fingerprint, kinds of a response and places of a row are told apart.
 * Method: tables of cases; the expected hashes were made by Python's json.dumps and hashlib.
 */
import { describe, expect, test } from "vitest";

import { fingerprintFit } from "../../../src/sources/local/fingerprint.ts";
import { placeRow } from "../../../src/sources/local/place.ts";
import { responseKind } from "../../../src/sources/local/response-kind.ts";
import { testSettings } from "../../support/settings.ts";

const FIELDS = { intentId: "inv-1", amount: 500n, currency: "usd" };
const SEED_HASH = "887ec38a70d0d1d41a51b9fb604ad1a50ab301429324d876b9d8b76aceaf7e9c";
const ODD_FIELDS = { ...FIELDS, intentId: "bestellung-ü-😀" };

describe("fingerprintFit (case B11)", () => {
  test.each([
    ["the documented one", SEED_HASH, FIELDS, "python"],
    ["in capitals", SEED_HASH.toUpperCase(), FIELDS, "python"],
    ["with its algorithm named", `sha256:${SEED_HASH}`, FIELDS, "python"],
    [
      "currency in upper case",
      "791224ef82c0fd244e8b1b5166c6edc5e7b71acb7f60edd77e8996af564b913d",
      FIELDS,
      "python, upper case currency",
    ],
    [
      "amount as text",
      "3eb312374770c83dc2c4523393e6c470d3da32116405f5cd8b23a595a4a741ff",
      FIELDS,
      "python, text amount",
    ],
    [
      "JavaScript's separators",
      "0a366241f8127e2c86deb2e266e0754e0335770f19a85b130e50ac582f73aeb5",
      FIELDS,
      "compact",
    ],
    [
      "Python escapes what is not ASCII",
      "4522cc244f2cd932b7954b52b40f6f5846d60fb2fb2257233f36b95ba4a14d5f",
      ODD_FIELDS,
      "python",
    ],
    [
      "JavaScript does not",
      "9c3f7fd4c774f204a6f9b10561ba35fa9aace7b87aa367143b8a55b6fddf53de",
      ODD_FIELDS,
      "compact",
    ],
  ])("behavior: %s", (_, hash, fields, fit) => {
    expect(fingerprintFit(hash, fields)).toBe(fit);
  });

  test.each([
    ["another amount", { ...FIELDS, amount: 501n }],
    ["another currency", { ...FIELDS, currency: "eur" }],
    ["another intent", { ...FIELDS, intentId: "inv-2" }],
  ])("error: %s has no fit", (_, fields) => {
    expect(fingerprintFit(SEED_HASH, fields)).toBeNull();
  });
});

describe("responseKind (case B04)", () => {
  test.each([
    [null, "none"],
    ["null", "none"],
    ["", "none"],
    [
      '{"id":"pi_1","object":"payment_intent","last_payment_error":{"type":"card_error"}}',
      "object",
    ],
    ['{"id":"ch_1"}', "object"],
    ['{"error":{"type":"card_error","decline_code":"do_not_honor"}}', "error"],
    ['{"type":"invalid_request_error","message":"no"}', "error"],
    ['{"decline_code":"insufficient_funds"}', "error"],
    ['{"type":"StripeCardError","rawType":"card_error"}', "error"],
    [JSON.stringify('{"error":{"type":"card_error"}}'), "error"],
    ['{"error":"timeout"}', "other"],
    ['{"error":{"type":"api_error"}}', "other"],
    ['{"type":"idempotency_error"}', "other"],
    ['{"type":"StripeConnectionError"}', "other"],
    ['{"error":null,"id":"pi_2"}', "object"],
    ['"Request timed out"', "other"],
    ["Request timed out", "other"],
    ["{}", "other"],
    ["[]", "other"],
    ["5", "other"],
  ])("behavior: %s is %s", (text, kind) => {
    expect(responseKind(text)).toBe(kind);
  });
});

const oneChain = JSON.stringify([
  {
    chainId: "eip155:8453",
    rpcUrls: ["http://127.0.0.1:8545"],
    tokens: ["USDC"],
    payees: [`0x${"cd".repeat(20)}`],
  },
]);

describe("placeRow", () => {
  const { chains } = testSettings({}, { EVM_CHAINS: oneChain });
  const settings = { accounts: ["acct_1"], livemode: true, chains };
  const row = { rail: null, network: null, chargeId: null, nonce: null, accountId: "shop" };
  const hash = `0x${"a".repeat(64)}`;

  test.each([
    ["default", {}, { rail: "stripe", scope: "platform/live" }],
    ["a listed account", { accountId: "acct_1" }, { rail: "stripe", scope: "acct_1/live" }],
    ["an unlisted account", { accountId: "acct_9" }, { rail: "stripe", scope: "platform/live" }],
    ["a network", { network: "EIP155:1" }, { rail: "evm", scope: "eip155:1" }],
    ["a network's old name", { network: "Base" }, { rail: "evm", scope: "eip155:8453" }],
    ["a bare chain id", { rail: "evm", network: "10" }, { rail: "evm", scope: "eip155:10" }],
    ["a hash", { chargeId: hash }, { rail: "evm", scope: "eip155:8453" }],
    ["a nonce", { nonce: hash }, { rail: "evm", scope: "eip155:8453" }],
    ["a full id", { chargeId: `eip155:10:${hash}:3` }, { rail: "evm", scope: "eip155:10" }],
    [
      "a rail over its marks",
      { rail: "Stripe", nonce: hash },
      { rail: "stripe", scope: "platform/live" },
    ],
  ])("behavior: %s", (_, change, place) => {
    expect(placeRow({ ...row, ...change }, settings)).toEqual(place);
  });

  test.each([
    ["an unknown rail", { rail: "paypal" }, settings, "rail"],
    ["no network and two chains", { rail: "evm" }, { ...settings, chains: [] }, "network"],
    ["a network in words", { rail: "evm", network: "the base chain" }, settings, "network"],
  ])("error: %s", (_, change, where, field) => {
    expect(placeRow({ ...row, ...change }, where)).toMatchObject({ field });
  });
});
