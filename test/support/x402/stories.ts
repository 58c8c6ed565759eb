/**
 * What real clients go through over x402, each story as one function. It says what the client was
 * told, what it signed and how often the goods were made; what is on the chain is looked up there.
 */
import type { Hex } from "../../../src/sandbox/chain/local-types.ts";
import { FACILITATOR_INDEX } from "./shop.ts";
import type { Seen, Signed, X402World } from "./world.ts";

/** How a story ended. */
export interface Told {
  readonly seen: readonly Seen[];
  readonly signed: readonly Signed[];
  /** How often the goods were made. */
  readonly served: number;
}

type Story = (world: X402World) => Promise<readonly Seen[]>;

// Nothing of a story takes a second unless the machine is under full load.
const WAIT_MAX_MS = 10_000;
const LOOK_AGAIN_MS = 5;
// Until the facilitator gives up; the server asks it a second time.
const SHORT_MS = 150;

const normal: Story = async (world) => [await world.buy()];

/** The answer is lost and the client buys anew, under the same payment identifier. */
const lostThenBoughtAgain: Story = async (world) => {
  const id = `pay_${String(world.signed.length).padStart(20, "0")}`;
  world.line.loseNext();
  return [await world.buy(id), await world.buy(id)];
};

const lostThenResent: Story = async (world) => {
  const signed = await world.sign();
  world.line.loseNext();
  return [await world.send(signed), await world.send(signed)];
};

const threeAtOnce: Story = async (world) => {
  const signed = await world.sign();
  return Promise.all([1, 2, 3].map(() => world.send(signed)));
};

/** Whoever sees an authorization can submit it: here before the shop does. */
const thirdPartyFirst: Story = async (world) => {
  const signed = await world.sign();
  const { chain, token } = world.evm;
  await chain.submit(token, signed, { from: accountOf(world, 5) });
  return [await world.send(signed)];
};

const canceled: Story = async (world) => {
  const signed = await world.sign();
  const { chain, token, payer } = world.evm;
  await chain.cancel(token, payer, signed.nonce);
  return [await world.send(signed)];
};

/** Broadcast and not mined before the facilitator gives up waiting; mined after all. */
const settlementPending: Story = async (world) => {
  const signed = await world.sign();
  const { chain } = world.evm;
  await chain.automine(false);
  world.shop.waitFor(SHORT_MS);
  const first = await world.send(signed);
  world.shop.waitFor(WAIT_MAX_MS);
  await chain.mine(1);
  await chain.automine(true);
  return [first, await world.send(signed)];
};

/** The facilitator's transaction is replaced by a dearer one of the same content. */
const feeBump: Story = async (world) => {
  const { chain } = world.evm;
  await chain.automine(false);
  const buying = world.buy();
  await reprice(world);
  await chain.mine(1);
  await chain.automine(true);
  return [await buying];
};

const reorganised: Story = async (world) => {
  const seen = await world.buy();
  await world.evm.chain.reorg(1);
  return [seen];
};

/** The stories by the letters under which they are known. */
export const STORIES = {
  A: normal,
  B: lostThenBoughtAgain,
  C: lostThenResent,
  D: threeAtOnce,
  E: thirdPartyFirst,
  F: canceled,
  G: settlementPending,
  H: feeBump,
  I: reorganised,
} as const satisfies Record<string, Story>;

/** Plays one story. */
export async function tell(world: X402World, story: keyof typeof STORIES): Promise<Told> {
  const before = { signed: world.signed.length, served: world.shop.served() };
  const seen = await STORIES[story](world);
  return {
    seen,
    signed: world.signed.slice(before.signed),
    served: world.shop.served() - before.served,
  };
}

interface Waiting {
  readonly hash: Hex;
}

/** Sends what the facilitator's account has waiting once more, with a higher fee. */
async function reprice(world: X402World): Promise<void> {
  const waiting = await firstWaiting(world, accountOf(world, FACILITATOR_INDEX));
  await world.evm.chain.replace(waiting.hash);
}

async function firstWaiting(world: X402World, from: Hex): Promise<Waiting> {
  const ends = performance.now() + WAIT_MAX_MS;
  while (performance.now() < ends) {
    const pool = (await world.evm.anvil.rpc("txpool_content")) as {
      readonly pending: Readonly<Record<string, Readonly<Record<string, Waiting>>>>;
    };
    const [, mine] = Object.entries(pool.pending).find(([who]) => who.toLowerCase() === from) ?? [];
    const [first] = Object.values(mine ?? {});
    // A replacement is only recognised by who has seen what it replaces.
    if (first !== undefined && world.shop.hasLookedAt(first.hash)) return first;
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
  throw new Error(`${from} sent nothing`);
}

function accountOf(world: X402World, index: number): Hex {
  const found = world.evm.chain.accounts[index];
  if (found === undefined) throw new Error(`the node has no account ${String(index)}`);
  return found;
}
