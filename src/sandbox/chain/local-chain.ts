/** Actions on a local chain: tokens, authorizations, transfers, blocks and their loss. */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";

import { encodeDeployData, encodeFunctionData, parseAbi } from "viem";
import { privateKeyToAccount } from "viem/accounts";

import type { Anvil } from "./anvil.ts";
import { AUTHORIZATION_TYPES } from "./authorization-types.ts";
import { GAS, blockActions } from "./blocks.ts";
import type {
  Authorization,
  Hex,
  LocalChain,
  LocalToken,
  SendOptions,
  Sent,
  Wallet,
} from "./local-types.ts";

interface Artifact {
  readonly abi: readonly unknown[];
  readonly bytecode: Hex;
}

const ARTIFACTS = JSON.parse(
  readFileSync(new URL("contracts/artifacts.json", import.meta.url), "utf8"),
) as Record<"Token" | "Batcher", Artifact>;

const CONSTRUCTOR = parseAbi(["constructor(string, string, uint8, string)"]);

/** What the actions call. */
export const TOKEN_ABI = parseAbi([
  "function mint(address to, uint256 value)",
  "function burn(uint256 value)",
  "function blacklist(address account, bool listed)",
  "function skim(address from, address to, uint256 value)",
  "function transfer(address to, uint256 value)",
  "function transferFrom(address from, address to, uint256 value)",
  "function transferWithMemo(address to, uint256 value, bytes32 memo)",
  "function transferWithAuthorization(address, address, uint256, uint256, uint256, bytes32, bytes)",
  "function cancelAuthorization(address authorizer, bytes32 nonce, bytes signature)",
  "function batch(address target, bytes[] calls)",
  "function pay(address token, address to, uint256 value, uint256 times)",
]);

const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";

// Nodes take a replacement from a tenth more on.
const DEARER = 5n;

interface WireTransaction {
  readonly from: Hex;
  readonly to: Hex;
  readonly input: Hex;
  readonly nonce: Hex;
  readonly gasPrice?: Hex;
  readonly maxFeePerGas?: Hex;
}

/** The actions on a running chain. */
export async function openLocalChain(anvil: Anvil): Promise<LocalChain> {
  const { rpc } = anvil;
  const accounts = ((await rpc("eth_accounts")) as Hex[]).map(lower);
  const [first] = accounts;
  if (first === undefined) throw new Error("the chain has no accounts");
  const receipt = (txHash: Hex): Promise<Sent> => receiptOf(anvil, txHash);
  const send: LocalChain["send"] = async (to, data, options = {}) => {
    const txHash = (await rpc("eth_sendTransaction", [
      transaction(first, to, data, options),
    ])) as Hex;
    return options.wait === false
      ? { txHash, blockNumber: null, status: "pending", transfers: [] }
      : sentOf(await mined(anvil, txHash));
  };
  const deploy = async (data: Hex): Promise<Hex> => {
    const txHash = await rpc("eth_sendTransaction", [{ from: first, data, gas: GAS }]);
    return lower((await mined(anvil, txHash as Hex)).contractAddress ?? "");
  };
  const head: LocalChain["head"] = async () => {
    const block = (await rpc("eth_getBlockByNumber", ["latest", false])) as Record<string, string>;
    return { number: Number(block["number"]), seconds: Number(block["timestamp"]) };
  };
  return {
    anvil,
    accounts,
    newWallet: () => {
      const account = privateKeyToAccount(`0x${randomBytes(32).toString("hex")}`);
      return { address: lower(account.address), account };
    },
    deployToken: async (options = {}) => {
      const { symbol = "USDC", decimals = 6 } = options;
      const args = ["USD Coin", symbol, decimals, "2"] as const;
      const { bytecode } = ARTIFACTS.Token;
      const address = await deploy(encodeDeployData({ abi: CONSTRUCTOR, bytecode, args }));
      return { address, name: "USD Coin", version: "2" };
    },
    deployBatcher: () => deploy(ARTIFACTS.Batcher.bytecode),
    mint: (token, to, value) => send(token.address, encode("mint", [to, value])),
    sign: async (token, from, to, value, options = {}) => {
      const ends = (await head()).seconds + (options.validForSeconds ?? 300);
      const nonce = options.nonce ?? `0x${randomBytes(32).toString("hex")}`;
      const terms = { from: from.address, to, value, validBefore: BigInt(ends), nonce };
      return { ...terms, signature: await signTransfer(anvil, token, from, terms) };
    },
    submit: (token, authorization, options) =>
      send(token.address, submission(authorization), options),
    cancel: async (token, from, nonce) => {
      const signature = await signCancel(anvil, token, from, nonce);
      return send(token.address, encode("cancelAuthorization", [from.address, nonce, signature]));
    },
    send,
    transfer: (token, from, to, value) =>
      send(token.address, encode("transfer", [to, value]), { from }),
    receipt,
    head,
    replace: async (waiting) => {
      const found = (await rpc("eth_getTransactionByHash", [waiting])) as WireTransaction;
      const { from, to, input, nonce, gasPrice, maxFeePerGas } = found;
      const fee = BigInt(maxFeePerGas ?? gasPrice ?? 0) * DEARER;
      const options = { from, wait: false, accountNonce: Number(nonce), gasPrice: fee };
      return send(to, input, options);
    },
    ...blockActions(anvil),
  };
}

function signTransfer(
  anvil: Anvil,
  token: LocalToken,
  from: Wallet,
  terms: Omit<Authorization, "signature">,
): Promise<Hex> {
  return from.account.signTypedData({
    domain: domainOf(anvil, token),
    types: { TransferWithAuthorization: AUTHORIZATION_TYPES.TransferWithAuthorization },
    primaryType: "TransferWithAuthorization",
    message: { ...terms, validAfter: 0n },
  });
}

function signCancel(anvil: Anvil, token: LocalToken, from: Wallet, nonce: Hex): Promise<Hex> {
  return from.account.signTypedData({
    domain: domainOf(anvil, token),
    types: { CancelAuthorization: AUTHORIZATION_TYPES.CancelAuthorization },
    primaryType: "CancelAuthorization",
    message: { authorizer: from.address, nonce },
  });
}

/** The call that submits an authorization. */
export function submission(one: Authorization): Hex {
  const { from, to, value, validBefore, nonce, signature } = one;
  return encode("transferWithAuthorization", [from, to, value, 0n, validBefore, nonce, signature]);
}

/** Encodes a call of TOKEN_ABI. */
export function encode(
  functionName: Parameters<typeof encodeFunctionData<typeof TOKEN_ABI>>[0]["functionName"],
  args: readonly unknown[],
): Hex {
  return encodeFunctionData({ abi: TOKEN_ABI, functionName, args } as Parameters<
    typeof encodeFunctionData<typeof TOKEN_ABI>
  >[0]);
}

function transaction(first: Hex, to: Hex, data: Hex, options: SendOptions): Record<string, string> {
  const { from, accountNonce, gasPrice } = options;
  return {
    from: from ?? first,
    to,
    data,
    gas: GAS,
    ...(accountNonce === undefined ? {} : { nonce: hex(accountNonce) }),
    ...(gasPrice === undefined ? {} : { gasPrice: hex(gasPrice) }),
  };
}

interface WireReceipt {
  readonly transactionHash: Hex;
  readonly blockNumber: Hex;
  readonly status: Hex;
  readonly contractAddress: Hex | null;
  readonly logs: readonly { readonly topics: readonly Hex[]; readonly logIndex: Hex }[];
}

// A block comes at once; a machine under full load needs a moment.
const MINED_MAX_MS = 10_000;
const ASK_AGAIN_MS = 3;

/** The receipt of a transaction that is about to be mined. Throws when none comes. */
async function mined({ rpc }: Anvil, txHash: Hex): Promise<WireReceipt> {
  const ends = performance.now() + MINED_MAX_MS;
  for (;;) {
    const found = (await rpc("eth_getTransactionReceipt", [txHash])) as WireReceipt | null;
    if (found !== null) return found;
    if (performance.now() > ends) throw new Error(`${txHash} was not mined`);
    await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
  }
}

async function receiptOf({ rpc }: Anvil, txHash: Hex): Promise<Sent> {
  const found = (await rpc("eth_getTransactionReceipt", [txHash])) as WireReceipt | null;
  if (found === null) return { txHash, blockNumber: null, status: "pending", transfers: [] };
  return sentOf(found);
}

function sentOf(found: WireReceipt): Sent {
  const transfers = found.logs.filter((log) => log.topics[0] === TRANSFER);
  return {
    txHash: found.transactionHash,
    blockNumber: Number(found.blockNumber),
    status: found.status === "0x1" ? "succeeded" : "reverted",
    transfers: transfers.map((log) => Number(log.logIndex)),
  };
}

function domainOf(anvil: Anvil, token: LocalToken) {
  const { name, version, address } = token;
  return { name, version, chainId: anvil.chainId, verifyingContract: address };
}

function hex(value: number | bigint): Hex {
  return `0x${value.toString(16)}`;
}

function lower(address: string): Hex {
  return address.toLowerCase() as Hex;
}
