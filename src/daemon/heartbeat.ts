/** The dead man's switch: an outside watch that cries when tallyd has not called for a while. */
import type { Log } from "../core/log.ts";

/** What became of the calls of this replica since it started. */
export interface HeartbeatCounts {
  readonly sent: number;
  /** The watch did not answer well. */
  readonly failed: number;
  /** There was no complete healthy pass, so nothing was called. */
  readonly withheld: number;
}

export interface Heartbeat {
  /** Calls when all is well. Never throws for what the other side or the network does. */
  readonly beat: (signal: AbortSignal) => Promise<HeartbeatCounts>;
  readonly counts: () => HeartbeatCounts;
}

// A watch answers at once or not at all; the next beat is not far.
const CALL_TIMEOUT_MS = 10_000;

/** Makes the heartbeat; `faults` says why it must not be called now. */
export function createHeartbeat(
  url: string,
  deps: {
    readonly faults: () => Promise<readonly string[]>;
    readonly log: Log;
    readonly timeoutMs?: number;
  },
): Heartbeat {
  const sum = { sent: 0, failed: 0, withheld: 0 };
  // The first of a row is news, the rest is the same news again.
  let last = "";
  const note = (what: string, words: string, fields: Readonly<Record<string, unknown>>): void => {
    deps.log[last === what ? "debug" : "warn"](words, fields);
    last = what;
  };
  return {
    beat: async (signal) => {
      const faults = await deps.faults();
      if (faults.length > 0) {
        sum.withheld += 1;
        note("withheld", "no heartbeat: the pass is not complete and healthy", { faults });
        return { sent: 0, failed: 0, withheld: 1 };
      }
      const timeout = AbortSignal.timeout(deps.timeoutMs ?? CALL_TIMEOUT_MS);
      const error = await call(url, AbortSignal.any([signal, timeout]));
      if (error === null) {
        sum.sent += 1;
        last = "";
        return { sent: 1, failed: 0, withheld: 0 };
      }
      sum.failed += 1;
      note("failed", "HEARTBEAT_URL did not take the heartbeat", { error });
      return { sent: 0, failed: 1, withheld: 0 };
    },
    counts: () => ({ ...sum }),
  };
}

/** What went wrong, without the address, which is a secret; `null`: nothing. */
async function call(url: string, signal: AbortSignal): Promise<string | null> {
  try {
    // A redirect is not followed: a login page would answer 200 for ever.
    const headers = { "user-agent": "tallyd" };
    const response = await fetch(url, { redirect: "manual", signal, headers });
    await response.body?.cancel();
    const { status } = response;
    return status >= 200 && status < 300 ? null : `HTTP ${String(status)}`;
  } catch (error) {
    if (!(error instanceof Error)) return "no answer";
    const cause = error.cause instanceof Error ? error.cause : error;
    return "code" in cause && typeof cause.code === "string" ? cause.code : cause.name;
  }
}
