/** NOTIFY and LISTEN: replicas wake one another. */
import type { Pool } from "pg";

import type { Log } from "../core/log.ts";

/** A standing LISTEN. */
export interface WakeChannel {
  /** Wakes every other replica that listens. */
  readonly notify: () => Promise<void>;
  readonly close: () => void;
}

const CHANNEL = "tallyd_wake";
// A lost wake costs one tick of the loop, so there is no hurry to listen again.
const RECONNECT_MS = 2_000;

/**
 * Listens on a connection of `pool` of its own and calls `onWake` at every notice, and once after
 * each (re)connection, because notices in between were missed. Never throws: without it the
 * loop's own beat is slower, not wrong.
 */
export function openWakeChannel(
  deps: { readonly pool: Pool; readonly log: Log; readonly replica: string },
  onWake: () => void,
): WakeChannel {
  let closed = false;
  let release: (() => void) | undefined;
  let timer: NodeJS.Timeout | undefined;

  const again = (): void => {
    if (!closed) timer = setTimeout(() => void listen(), RECONNECT_MS);
  };
  const listen = async (): Promise<void> => {
    try {
      const client = await deps.pool.connect();
      const giveBack = once(() => {
        client.release(true);
        again();
      });
      client.once("error", giveBack);
      client.once("end", giveBack);
      client.on("notification", (notice) => {
        // Our own notice would wake us about what we know.
        if (notice.payload !== deps.replica) onWake();
      });
      release = giveBack;
      if (closed) {
        giveBack();
        return;
      }
      await client.query(`listen ${CHANNEL}`);
      onWake();
    } catch (error) {
      deps.log.debug("listening for other replicas failed and is tried again", { error });
      if (release === undefined) again();
      else release();
    }
  };
  void listen();
  return {
    notify: async () => {
      await deps.pool.query(`select pg_notify('${CHANNEL}', $1)`, [deps.replica]);
    },
    close: () => {
      closed = true;
      clearTimeout(timer);
      release?.();
    },
  };
}

/** A connection's end is told twice (error, end), and it may be given back only once. */
function once(call: () => void): () => void {
  let called = false;
  return () => {
    if (called) return;
    called = true;
    call();
  };
}
