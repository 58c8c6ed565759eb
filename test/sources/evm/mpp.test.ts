/**
 * Goal: payments that the real client of the Machine Payments Protocol made are recognised by the
 * challenge that they answer.
 * Method: a recorded flow of mppx 0.11.0, client and server, with the logs of its transactions.
 */
import { readFileSync } from "node:fs";

import { expect, test } from "vitest";

import { parseLogs } from "../../../src/sources/evm/parse-logs.ts";
import { readLogs } from "../../../src/sources/evm/wire.ts";
import { challengeMarks } from "../../../src/sources/local/challenge.ts";
import { chainSettings } from "../../support/chain-rows.ts";

interface Recorded {
  readonly challenge: {
    readonly id: string;
    readonly realm: string;
    readonly request: { readonly amount: string; readonly recipient: string };
  };
  readonly authorized: readonly { readonly address: string }[];
  readonly memo: { readonly value: string; readonly logs: unknown };
}

const recorded = JSON.parse(
  readFileSync(new URL("../../fixtures/mpp/evm-charge@0.11.0.json", import.meta.url), "utf8"),
) as Recorded;
const { challenge, authorized, memo } = recorded;
const address = authorized[0]?.address ?? "";
const payee = challenge.request.recipient.toLowerCase();
const chain = chainSettings({
  tokens: [{ address, symbol: "USDC", decimals: 6 }],
  payees: [payee],
  mpp: { realm: challenge.realm },
});
const marks = challengeMarks(challenge.id, challenge.realm);

test("default: the authorization's nonce is the one of the challenge", () => {
  const { transfers } = parseLogs(readLogs(authorized), chain);
  expect(transfers).toHaveLength(1);
  expect(transfers[0]).toMatchObject({
    ...{ nonce: marks.nonce, recipient: payee, role: "charge", memo: null },
    value: BigInt(challenge.request.amount),
  });
});

test("default: head and tail of the memo are those of the challenge, and it counts once", () => {
  const { transfers } = parseLogs(readLogs(memo.logs), chain);
  expect(transfers).toHaveLength(1);
  const said = transfers[0]?.memo ?? "";
  expect(said).toBe(memo.value);
  expect(said.slice(0, 32) + said.slice(-14)).toBe(marks.memo);
});

test("behavior: another challenge and another realm leave other marks", () => {
  const { transfers } = parseLogs(readLogs(authorized), chain);
  expect(challengeMarks(`${challenge.id}x`, challenge.realm).nonce).not.toBe(transfers[0]?.nonce);
  expect(challengeMarks(challenge.id, "other.example").nonce).not.toBe(transfers[0]?.nonce);
});
