import { sqlState } from "./tx.ts";

// Node's words for "nobody answers there".
const NETWORK_CODES: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ETIMEDOUT",
  "EPIPE",
]);
// SQLSTATE: connection lost (08), refused log-in (28), no such database (3D000), no room (53),
// shut down or starting up (57P0x).
const STATE = /^(08...|28...|3D000|53...|57P0.)$/;
// pg reports these without any code.
const WORDS = [
  "connection terminated",
  "timeout exceeded when trying to connect",
  "client has encountered a connection error",
  "server does not support ssl",
  "cannot use a pool after calling end",
];

/** Is `error` a database that does not answer, as opposed to a statement that it refused? */
export function isOutOfReach(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof AggregateError && error.errors.length > 0) {
    return error.errors.every(isOutOfReach);
  }
  const code = sqlState(error) ?? "";
  if (NETWORK_CODES.has(code) || STATE.test(code)) return true;
  const message = error.message.toLowerCase();
  return WORDS.some((words) => message.includes(words)) || isOutOfReach(error.cause);
}
