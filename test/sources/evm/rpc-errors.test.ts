/** The words of vendors and what they mean, as their documentation and issues have them. */
import { expect, test } from "vitest";

import { httpErrorOf, rpcErrorOf } from "../../../src/sources/evm/rpc-errors.ts";

test.each([
  [
    -32602,
    "You can make eth_getLogs requests with up to a 500 block range. " +
      "Based on your parameters, this block range should work: [0x10, 0x1f]",
    "too_large",
    { from: 16, to: 31 },
  ],
  [
    -32602,
    "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range",
    "too_large",
    null,
  ],
  [-32005, "query returned more than 10000 results", "too_large", null],
  [-32005, "query timeout exceeded", "too_large", null],
  [-32602, "range 12000 exceeds limit of 10000", "too_large", null],
  [-32614, "eth_getLogs is limited to a 10,000 range", "too_large", null],
  [-32600, "block range is too wide", "too_large", null],
  [-32000, "block range too large", "too_large", null],
  [-32000, "please limit the query to at most 1000 blocks", "too_large", null],
  [
    -32602,
    "query exceeds max results 20000, retry with the range 100-200",
    "too_large",
    { from: 100, to: 200 },
  ],
  [-32000, "logs matched by query exceeds limit of 10000", "too_large", null],
  [-32000, "exceed max addresses or topics per search position", "broken", null],
  [
    -32000,
    "block range extends beyond current head block: requested 500, head 400",
    "lagging",
    null,
  ],
  [-32001, "Unknown block", "lagging", null],
  [-32000, "header not found", "lagging", null],
  [-32005, "daily request count exceeded, request rate limited", "rate_limit", null],
  [-32007, "100/second request limit reached", "rate_limit", null],
  [429, "Your app has exceeded its compute units per second capacity", "rate_limit", null],
  [-32000, "no backend is currently healthy to serve traffic", "unreachable", null],
  [-32601, "the method eth_getBlockReceipts does not exist/is not available", "unsupported", null],
  [-32000, "Unauthorized, please authenticate with API key", "refused", null],
  [-1, "gibberish", "broken", null],
])("behavior: %i %s", (code, message, fault, suggested) => {
  expect(rpcErrorOf({ code, message })).toMatchObject({ fault, suggested });
});

test.each([
  [429, "", "2", "rate_limit", 2_000],
  [401, "", null, "refused", null],
  [403, "", null, "refused", null],
  [413, '{"error":{"code":-32614}}', null, "too_large", null],
  [503, "no backend", null, "unreachable", null],
  [400, "block range too large", null, "too_large", null],
])("behavior: HTTP %i %s", (status, body, retryAfter, fault, retryAfterMs) => {
  expect(httpErrorOf(status, body, retryAfter)).toMatchObject({ fault, retryAfterMs });
});

test("error: an inverted or negative suggestion is none", () => {
  const message = "query exceeds max results 20000, retry with the range 200-100";
  expect(rpcErrorOf({ code: -32602, message }).suggested).toBeNull();
});
