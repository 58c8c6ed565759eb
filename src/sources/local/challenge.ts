import { concat, keccak256, stringToBytes } from "viem";

/** Marks on chain of a payment that answers a challenge of the Machine Payments Protocol. */
export interface ChallengeMarks {
  /** Nonce of the EIP-3009 authorization (mpp-specs, draft-evm-charge-00). */
  readonly nonce: string;
  /**
   * Head and tail of the memo of a TIP-20 transfer: tag, version and realm, and the challenge. What
   * lies between names the client and is not known here.
   */
  readonly memo: string;
}

// Tag and version of an attribution memo (mppx, tempo attribution).
const MEMO_HEAD = "0xef1ed71201";
// keccak(realm) and keccak(challenge id) are cut to these many bytes.
const REALM_BYTES = 10;
const CHALLENGE_BYTES = 7;

/** The marks that a payment for this challenge carries in this realm. */
export function challengeMarks(challengeId: string, realm: string): ChallengeMarks {
  const nonce = keccak256(concat([stringToBytes(challengeId), stringToBytes(realm)]));
  const head = MEMO_HEAD + digits(keccak256(stringToBytes(realm)), REALM_BYTES);
  return { nonce, memo: head + digits(keccak256(stringToBytes(challengeId)), CHALLENGE_BYTES) };
}

function digits(hash: string, bytes: number): string {
  return hash.slice(2, 2 + 2 * bytes);
}
