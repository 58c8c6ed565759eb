import { z } from "zod";

import { text, value, webAddress } from "./values.ts";

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;

const address = value("an address of 0x and 40 hexadecimal digits", (raw) =>
  typeof raw === "string" && ADDRESS.test(raw) ? raw.toLowerCase() : undefined,
);

const chainId = value("a CAIP-2 id such as eip155:8453", (raw) =>
  typeof raw === "string" && /^eip155:[1-9]\d{0,19}$/.test(raw) ? raw : undefined,
);

const block = value("a block number, 0 or more", (raw) =>
  typeof raw === "number" && Number.isSafeInteger(raw) && raw >= 0 ? raw : undefined,
);

const finality = value("safe, finalized, or a number of blocks", (raw) => {
  if (raw === "safe" || raw === "finalized") return raw;
  return typeof raw === "number" && Number.isSafeInteger(raw) && raw >= 0 ? raw : undefined;
});

/** The `chains` block: checked for shape, kept as it is for the chain rail. */
export const chains = z.array(
  z.strictObject({
    chainId,
    rpcUrls: z.array(webAddress).min(1, "at least one http:// or https:// URL"),
    tokens: z
      .array(
        z.union([
          text,
          z.strictObject({ address, symbol: text, decimals: z.int().min(0).max(78).optional() }),
        ]),
      )
      .min(1, "at least one token: a symbol such as USDC, or {address, symbol}"),
    payers: z.array(address).prefault([]),
    payees: z.array(address).prefault([]),
    startBlock: block.optional(),
    finality: finality.optional(),
  }),
);
