/** Signs an EIP-3009 authorization: once for an intent, until it is proven dead. */
import { randomBytes } from "node:crypto";

import type { JsonObject } from "./errors.ts";
import type { Requirement } from "./x402-wire.ts";

/** Whoever holds the payer's key, such as an account of viem's. */
export interface X402Signer {
  readonly address: string;
  signTypedData(typedData: object): Promise<string>;
}

/** A signed authorization. */
export interface SignedAuthorization {
  readonly nonce: string;
  /** Unix seconds. */
  readonly validBefore: number;
  readonly payload: JsonObject;
}

// EIP-3009, which the token's contract checks the signature by.
const TYPES = {
  TransferWithAuthorization: [
    { name: "from", type: "address" },
    { name: "to", type: "address" },
    { name: "value", type: "uint256" },
    { name: "validAfter", type: "uint256" },
    { name: "validBefore", type: "uint256" },
    { name: "nonce", type: "bytes32" },
  ],
};
const NONCE_BYTES = 32;

/** Signs what the requirement asks for; `now` in Unix seconds. */
export async function signAuthorization(
  signer: X402Signer,
  requirement: Requirement,
  now: number,
): Promise<SignedAuthorization> {
  const nonce = `0x${randomBytes(NONCE_BYTES).toString("hex")}`;
  const validBefore = Math.floor(now) + requirement.lifeS;
  const authorization = {
    from: signer.address,
    to: requirement.payTo,
    value: requirement.amount,
    validAfter: "0",
    validBefore: String(validBefore),
    nonce,
  };
  const signature = await signer.signTypedData({
    domain: {
      name: requirement.name,
      version: requirement.version,
      chainId: Number(requirement.network.split(":")[1]),
      verifyingContract: requirement.asset,
    },
    types: TYPES,
    primaryType: "TransferWithAuthorization",
    message: {
      ...authorization,
      value: BigInt(authorization.value),
      validAfter: 0n,
      validBefore: BigInt(validBefore),
    },
  });
  return { nonce, validBefore, payload: { signature, authorization } };
}
