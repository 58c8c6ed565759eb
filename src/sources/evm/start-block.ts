import type { Endpoint } from "./endpoints.ts";
import { readHeaders } from "./read-range.ts";
import type { Header } from "./wire.ts";

// Bisecting two hundred million blocks takes 28 steps.
const STEPS_MAX = 64;

/** The newest block that is not younger than `time`, at most `latest`; block 0 when all are. */
export async function blockAt(
  endpoint: Endpoint,
  time: Date,
  latest: Header,
  signal?: AbortSignal,
): Promise<number> {
  if (latest.time <= time) return latest.number;
  let low = 0;
  let high = latest.number;
  for (let step = 0; step < STEPS_MAX && high - low > 1; step += 1) {
    const middle = Math.floor((low + high) / 2);
    const headers = await readHeaders(endpoint, [middle], signal);
    const header = headers.get(middle);
    if (header !== undefined && header.time <= time) low = middle;
    else high = middle;
  }
  return low;
}
