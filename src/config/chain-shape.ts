import { z } from "zod";

import { canonicalAddress, CHAIN_ID } from "../core/chain.ts";
import type { ChainSettings, ChainToken } from "../core/settings.ts";
import { bridgedTwins, chainsOf, knownToken } from "./known-tokens.ts";
import { text, value, webAddress } from "./values.ts";

const address = value("an address of 0x and 40 hexadecimal digits", (raw) =>
  typeof raw === "string" && /^0x/i.test(raw) ? (canonicalAddress(raw) ?? undefined) : undefined,
);

const chainId = value("a CAIP-2 id such as eip155:8453", (raw) =>
  typeof raw === "string" && CHAIN_ID.test(raw) ? raw : undefined,
);

const block = value("a block number, 0 or more", (raw) =>
  typeof raw === "number" && Number.isSafeInteger(raw) && raw >= 0 ? raw : undefined,
);

const finality = value("safe, finalized, or a number of blocks", (raw) => {
  if (raw === "safe" || raw === "finalized") return raw;
  return typeof raw === "number" && Number.isSafeInteger(raw) && raw >= 0 ? raw : undefined;
});

const token = z.union([
  text,
  z.strictObject({ address, symbol: text, decimals: z.int().min(0).max(78).optional() }),
]);

// One filter names this many addresses at each of two positions; the smallest limit of a vendor
// is 1,000.
const ADDRESSES_MAX = 500;
const addresses = z
  .array(address)
  .max(ADDRESSES_MAX, `at most ${String(ADDRESSES_MAX)} addresses`)
  .prefault([]);

const chainBlock = z.strictObject({
  chainId,
  rpcUrls: z.array(webAddress).min(1, "at least one http:// or https:// URL"),
  tokens: z.array(token).min(1, "at least one token: a symbol such as USDC, or {address, symbol}"),
  payers: addresses,
  payees: addresses,
  startBlock: block.optional(),
  finality: finality.optional(),
  mpp: z.strictObject({ realm: text }).optional(),
});

/** The `chains` block, with symbols turned into addresses. */
export const chains = z
  .array(chainBlock.transform((raw, context): ChainSettings => toChain(raw, context)))
  .superRefine((list, context) => {
    const ids = list.map((chain) => chain.chainId);
    for (const [index, id] of ids.entries()) {
      if (ids.indexOf(id) === index) continue;
      const message = `every chain once; ${id} is there twice: put its endpoints in one block`;
      context.addIssue({ code: "custom", path: [index, "chainId"], message });
    }
  });

type RawChain = z.output<typeof chainBlock>;

function toChain(raw: RawChain, context: z.core.$RefinementCtx): ChainSettings {
  const tokens = raw.tokens.flatMap((one, index): ChainToken[] => {
    const found = toToken(raw.chainId, one);
    if (typeof found !== "string") return [found];
    context.addIssue({ code: "custom", path: ["tokens", index], message: found });
    return [];
  });
  if (raw.payers.length + raw.payees.length === 0) {
    const message = "at least one address in payers or payees: nothing else is read";
    context.addIssue({ code: "custom", path: ["payers"], message });
  }
  return {
    chainId: raw.chainId,
    rpcUrls: raw.rpcUrls,
    tokens,
    otherTokens: bridgedTwins(raw.chainId, tokens),
    payers: [...new Set(raw.payers)],
    payees: [...new Set(raw.payees)],
    startBlock: raw.startBlock ?? null,
    finality: raw.finality ?? "safe",
    mpp: raw.mpp ?? null,
  };
}

/** The token, or what is allowed instead. */
function toToken(chain: string, raw: RawChain["tokens"][number]): ChainToken | string {
  if (typeof raw !== "string") {
    return { address: raw.address, symbol: raw.symbol, decimals: raw.decimals ?? null };
  }
  const known = knownToken(chain, raw);
  if (known !== undefined) return known;
  const where = chainsOf(raw);
  const hint = where.length === 0 ? "USDC" : `${raw} on ${where.join(", ")}`;
  return `a known symbol (${hint}), or {"address": "0x…", "symbol": "${raw}"}`;
}
