/** What the end of a run proves, and so what may be kept of it. */
import type { Answer } from "./store.ts";

/**
 * - `keep`: this is the answer, also where it is an error
 * - `nothing`: nobody paid and nothing was done; the request leaves no trace
 * - `unknown`: it may have been paid
 */
export type Ending = "keep" | "nothing" | "unknown";

// RFC 6585: the request was counted and not carried out.
const TOO_MANY = 429;
const PAYMENT_REQUIRED = 402;
// What @x402/express answers when it lost sight of the facilitator, also in the middle of settling.
const BAD_GATEWAY = 502;

/**
 * The end of a paid request behind `@x402/express`. A refusal before settling demands a payment
 * anew (PAYMENT-REQUIRED) and has no settlement in it. Any other 402 came after the settlement was
 * tried: a failed settlement can still be mined, and one that threw leaves no header at all.
 */
export function endingOfPayment(answer: Pick<Answer, "status" | "headers">): Ending {
  const { status } = answer;
  const settlement = header(answer, "payment-response") ?? header(answer, "x-payment-response");
  if (settlement !== null) {
    if (isSuccess(settlement)) return "keep";
    return status === PAYMENT_REQUIRED || status === BAD_GATEWAY ? "unknown" : "keep";
  }
  if (header(answer, "payment-required") !== null) return "nothing";
  if (status === PAYMENT_REQUIRED || status === BAD_GATEWAY) return "unknown";
  return status === TOO_MANY ? "nothing" : "keep";
}

/** The end of a keyed request: every answer is the answer, but that of a rate limit. */
export function endingOfKeyed(answer: Pick<Answer, "status">): Ending {
  return answer.status === TOO_MANY ? "nothing" : "keep";
}

function header(answer: Pick<Answer, "headers">, name: string): string | null {
  const value = answer.headers[name];
  return typeof value === "string" ? value : null;
}

function isSuccess(settlement: string): boolean {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(settlement, "base64").toString("utf8"));
    if (typeof parsed !== "object" || parsed === null || !("success" in parsed)) return false;
    return parsed.success === true;
  } catch {
    return false;
  }
}
