/**
 * Goal: payments on chain, seen from the outside: exit codes, incidents, the team's rows.
 * Method: one EVM and one table hold all cases of a pass; every case looks at its own rows. Cases
 * B33 to B36, B39, B40.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";

import { encode, submission } from "../../src/sandbox/chain/local-chain.ts";
import type { Authorization, Wallet } from "../../src/sandbox/chain/local-types.ts";
import { SCOPE, chainFault, openChainWorld } from "../support/chain-world.ts";
import type { ChainWorld } from "../support/chain-world.ts";
import type { RowInput } from "./team-table.ts";
import { about, openE2e, openOf, theOpenAbout } from "./world.ts";
import type { E2e, Outcome } from "./world.ts";

const fault = await chainFault();

let world: E2e;
let evm: ChainWorld;

beforeAll(async () => {
  world = await openE2e();
});
afterAll(() => world.close());

/** A row of tallyd's own table about a payment on the chain. */
async function row(
  id: string,
  state: string,
  more: Record<string, unknown> = {},
  input: Partial<RowInput> = {},
): Promise<void> {
  const { token, payer, payee } = evm;
  await world.row({
    id,
    state,
    amount: 10_000,
    currency: "usdc",
    more: {
      ...{ rail: "evm", network: SCOPE, asset: token.address },
      ...{ payer: payer.address, payee: payee.address, ...more },
    },
    ...input,
  });
}

function named(one: Authorization): Record<string, unknown> {
  return { nonce: one.nonce, valid_before: new Date(Number(one.validBefore) * 1_000) };
}

function sign(
  value = 10_000n,
  over: { to?: Wallet; seconds?: number } = {},
): Promise<Authorization> {
  const { chain, token, payer, payee } = evm;
  const to = (over.to ?? payee).address;
  return chain.sign(token, payer, to, value, { validForSeconds: over.seconds ?? 300 });
}

async function start(env: Record<string, string> = {}): Promise<void> {
  evm = await openChainWorld();
  const { payers, payees, tokens, rpcUrls, chainId, startBlock, finality } = evm.settings();
  const block = { payers, payees, tokens, rpcUrls, chainId, startBlock, finality };
  await world.fresh("own", {
    STRIPE_API_KEY: undefined,
    EVM_CHAINS: JSON.stringify([block]),
    ORPHAN_GRACE: "1s",
    ...env,
  });
}

type Sent = Record<string, string>;

/** Submits an authorization and keeps the id of its charge under a name. */
async function paid(sent: Sent, name: string, one: Authorization): Promise<void> {
  const { txHash, transfers } = await evm.chain.submit(evm.token, one);
  Object.assign(sent, { [name]: `${SCOPE}:${txHash}:${String(transfers[0])}` });
}

async function stageB34(sent: Sent): Promise<void> {
  // B34: a lost receipt, a fresh nonce, one resource.
  const [n1, n2] = [await sign(), await sign()];
  await paid(sent, "B34-1", n1);
  await paid(sent, "B34-2", n2);
  await row("B34-L1", "failed_retryable", { ...named(n1), reference: "B34" });
  await row("B34-L2", "recorded", { ...named(n2), reference: "B34" });
  const dead = await sign(10_000n, { seconds: 60 });
  await row("B34-dead", "reconciling", named(dead));
  const alive = await sign(10_000n, { seconds: 100_000 });
  await row("B34-alive", "reconciling", named(alive));
}

async function stageB35(sent: Sent): Promise<void> {
  const { chain, token, payer } = evm;
  // B35: the hash changed; used, and stored as failed; canceled; paid to somebody else.
  const a = await sign(20_000n);
  await paid(sent, "B35-a", a);
  const lost = `0x${"de".repeat(32)}`;
  await row("B35-a", "reconciling", named(a), { amount: 20_000, charge: lost });
  const b = await sign(20_001n);
  await paid(sent, "B35-b", b);
  await row("B35-b", "failed_terminal", named(b), { amount: 20_001 });
  const c = await sign(20_002n);
  await chain.cancel(token, payer, c.nonce);
  await row("B35-c", "reconciling", named(c), { amount: 20_002 });
  const d = await chain.submit(token, a);
  await row("B35-d", "recorded", {}, { amount: 20_003, charge: d.txHash });
  const e = await sign(20_004n, { to: chain.newWallet() });
  await paid(sent, "B35-e", e);
  await row("B35-e", "reconciling", named(e), { amount: 20_004 });
  const pending = { success: false, errorReason: "settlement_pending", transaction: lost };
  const f = await sign(20_005n);
  await paid(sent, "B35-f", f);
  await row("B35-f", "in_flight", named(f), { amount: 20_005, response: pending });
}

async function stageB36(): Promise<void> {
  const { chain, token } = evm;
  // B36: four in one transaction, five rows.
  const batcher = await chain.deployBatcher();
  const four = await Promise.all([0, 1, 2, 3].map(() => sign(30_000n)));
  const calls = four.map(submission);
  const { txHash } = await chain.send(batcher, encode("batch", [token.address, calls]));
  for (const [n, one] of four.entries()) {
    const more = { ...named(one), reference: `B36-${String(n)}` };
    await row(`B36-L${String(n)}`, "recorded", more, {
      amount: 30_000,
      charge: txHash.toUpperCase().replace("0X", "0x"),
    });
  }
  const other = `0x${"99".repeat(32)}`;
  await row("B36-L5", "recorded", { nonce: other }, { amount: 30_000, charge: txHash });
}

async function stageMoney(sent: Sent): Promise<void> {
  const { chain, token, payer, payee } = evm;
  // B40: less than authorised; a payment on another chain; nothing at all of it.
  const less = await sign(9_900n);
  await paid(sent, "B40-6", less);
  await row("B40-L6", "recorded", named(less));
  await row("B40-L5", "recorded", { nonce: `0x${"55".repeat(32)}` });
  // B33: beyond 2^53.
  const huge = await sign(9_007_199_254_740_993n);
  await chain.mint(token, payer.address, 20_000_000_000_000_000n);
  await paid(sent, "B33", huge);
  await row("B33-L3", "recorded", named(huge), { amount: 9_007_199_254_740_993n });
  // Our own wallet paid and no row knows of it; a stranger sent something.
  await paid(sent, "orphan", await sign(77n));
  const stranger = chain.accounts[1]!;
  await chain.mint(token, stranger, 1_000n);
  const gift = await chain.transfer(token, stranger, payee.address, 500n);
  sent["gift"] = `${SCOPE}:${gift.txHash}:${String(gift.transfers[0])}`;
  // Neither nonce nor hash.
  await paid(sent, "likely", await sign(88_888n));
  await row("likely-L1", "reconciling", {}, { amount: 88_888, secondsAgo: 30 });
}

describe.skipIf(fault !== "")("one pass", () => {
  let first: Outcome;
  let second: Outcome;
  const sent: Record<string, string> = {};

  beforeAll(async () => {
    await start();
    for (const stage of [stageB34, stageB35, stageB36, stageMoney]) await stage(sent);
    await evm.chain.mine(10, 60);
    first = await world.once();
    second = await world.once();
  });
  afterAll(() => evm.close());

  it("behavior: everything was read, something is open, the second pass is quiet", () => {
    expect(first.json).toMatchObject({ failures: [] });
    expect(first.exitCode).toBe(3);
    expect(second.open).toEqual(first.open);
    expect(second.messages).toEqual(first.messages);
    expect(second.rows).toEqual(first.rows);
  });

  it("B34: two nonces of one purchase are a double charge, and the failed row is drift", () => {
    const double = theOpenAbout(first, "double_charge", "B34-L1");
    expect(double).toMatchObject({
      basis: "reference",
      rail: "evm",
      scope: SCOPE,
      severity: "critical",
      charges: [sent["B34-1"], sent["B34-2"]],
      intents: ["B34-L1", "B34-L2"],
      amountAtRisk: "10000",
      currency: "usdc",
    });
    expect(about(first, "B34-L1")).toContain("state_drift critical");
    expect(first.rows["B34-L1"]?.state).toBe("failed_retryable");
  });

  it("B34: a dead authorization can never settle, a living one waits without an alert", () => {
    expect(first.rows["B34-dead"]?.state).toBe("failed_terminal");
    expect(first.rows["B34-alive"]?.state).toBe("reconciling");
    expect(about(first, "B34-dead")).toEqual([]);
    expect(about(first, "B34-alive")).toEqual([]);
  });

  it("B35: the nonce decides, whatever hash or error was stored", () => {
    expect(first.rows["B35-a"]).toMatchObject({ state: "recorded" });
    // The row spells a bare hash, so the mined one is spelled like it.
    expect(sent["B35-a"]).toContain(String(first.rows["B35-a"]?.charge_id));
    expect(first.rows["B35-a"]?.response_json).toMatchObject({ success: true, network: SCOPE });
    expect(about(first, "B35-b")).toEqual(["state_drift critical"]);
    expect(first.rows["B35-b"]?.state).toBe("failed_terminal");
    expect(first.rows["B35-c"]?.state).toBe("failed_terminal");
    expect(theOpenAbout(first, "state_drift", "B35-d")).toMatchObject({ basis: "reverted" });
    expect(about(first, "B35-e")).toEqual(["amount_mismatch critical"]);
    expect(first.rows["B35-e"]?.state).toBe("reconciling");
    expect(first.rows["B35-f"]?.state).toBe("recorded");
  });

  it("B36: four rows share a hash in peace, the fifth has no transfer of its own", () => {
    expect(theOpenAbout(first, "duplicate_charge_id", "B36-L5")).toMatchObject({
      intents: ["B36-L0", "B36-L1", "B36-L2", "B36-L3", "B36-L5"],
      evidence: { surplus: ["B36-L5"] },
    });
    const others = first.incidents.filter((one) => one.code !== "duplicate_charge_id");
    expect(about({ incidents: others }, "B36-L0")).toEqual([]);
  });

  it("B33, B40: amounts to the last unit, less than meant, and nothing at all", () => {
    expect(about(first, "B33")).toEqual([]);
    expect(theOpenAbout(first, "amount_mismatch", "B40-L6").evidence).toMatchObject({
      difference: "-100",
    });
    expect(theOpenAbout(first, "state_drift", "B40-L5")).toMatchObject({ basis: "never_existed" });
  });

  it("behavior: orphans by who paid", () => {
    const orphans = openOf(first, "orphan_charge");
    expect(orphans.map((one) => [one.charges[0], one.severity]).sort()).toEqual(
      [
        [sent["orphan"], "critical"],
        [sent["gift"], "info"],
        [sent["likely"], "critical"],
      ].sort(),
    );
  });

  it("behavior: a likeness is suggested and never written", async () => {
    expect(first.rows["likely-L1"]?.state).toBe("reconciling");
    const explained = (await world.run("explain", "likely-L1")).json as {
      resolutions: { decision: string; outcome: string; charge: string }[];
    };
    expect(explained.resolutions.at(-1)).toMatchObject({
      decision: "recorded",
      outcome: "suggested",
      charge: sent["likely"],
    });
  });

  it("behavior: explain takes a hash in any spelling and tells the story", async () => {
    const [, , hash, log] = sent["B35-a"]!.split(":");
    const spelled = `${hash!.toUpperCase().replace("0X", "0x")}#${log!}`;
    for (const id of ["B35-a", hash!, spelled]) {
      const { json, exitCode } = await world.run("explain", id);
      expect(exitCode).toBe(0);
      expect(json).toMatchObject({
        intent: { id: "B35-a", rail: "evm" },
        charges: [{ id: sent["B35-a"], transaction: hash, basis: "nonce" }],
        contract: {
          identity: {},
          operation: {},
          binding: {},
          admission: {},
          retention: {},
          uncertainty: {},
        },
      });
      const { events } = json as { events: { type: string }[] };
      expect(events.map((one) => one.type)).toContain("chain.authorization_used");
    }
  });
});

describe.skipIf(fault !== "")("over time", () => {
  beforeEach(() => start());
  afterEach(() => evm.close());

  it("B39: nothing is concluded above finality; a payment that moves is one payment", async () => {
    const { chain, token } = evm;
    const one = await sign();
    await chain.submit(token, one);
    await row("B39-L1", "reconciling", named(one));
    const early = await world.once();
    expect(early.rows["B39-L1"]?.state).toBe("reconciling");
    expect(early.open).toEqual([]);
    const data = submission(one);
    await chain.reorg(1, [{ from: chain.accounts[0]!, to: token.address, data, block: 0 }]);
    await chain.mine(8, 10);
    const late = await world.once();
    expect(late.rows["B39-L1"]?.state).toBe("recorded");
    expect(late.open).toEqual([]);
    expect(late.messages).toEqual([]);
  });

  it("B39: one that vanished and has ended is failed for good, without a double charge", async () => {
    const { chain, token } = evm;
    const one = await sign(10_000n, { seconds: 60 });
    await chain.submit(token, one);
    await row("B39-L1", "reconciling", named(one));
    await world.once();
    await chain.reorg(1);
    await chain.mine(8, 60);
    const late = await world.once();
    expect(late.rows["B39-L1"]?.state).toBe("failed_terminal");
    expect(late.open).toEqual([]);
  });

  it("behavior: a long scan says how far it is, a short one nothing", async () => {
    expect((await world.once()).stderr).not.toContain("blocks of");
    await evm.chain.mine(1_010);
    const long = await world.once();
    expect(long.exitCode).toBe(0);
    expect(long.stderr).toMatch(/blocks of eip155:31337: +100% 1\d{3} of 1\d{3}/);
  });

  it("behavior: a transfer back closes the double charge", async () => {
    const { chain, token, payer, payee } = evm;
    for (const n of ["1", "2"]) {
      const one = await sign();
      await chain.submit(token, one);
      await row(`L${n}`, "recorded", { ...named(one), reference: "o-1" });
    }
    await chain.mine(6);
    expect((await world.once()).open).toEqual(["double_charge critical"]);
    await chain.anvil.rpc("anvil_impersonateAccount", [payee.address]);
    await chain.anvil.rpc("anvil_setBalance", [payee.address, "0xde0b6b3a7640000"]);
    await chain.transfer(token, payee.address, payer.address, 10_000n);
    await chain.mine(6);
    const closed = await world.once();
    expect(closed.open).toEqual([]);
    expect(closed.exitCode).toBe(0);
  });

  it("error: an endpoint out of reach is exit 4 and concludes nothing", async () => {
    await row("L1", "recorded", { nonce: `0x${"55".repeat(32)}` });
    await row("L2", "reconciling", named(await sign(1n, { seconds: 60 })));
    await evm.chain.mine(8, 60);
    evm.proxy.set({ status: 503 });
    const blind = await world.once();
    expect(blind.exitCode).toBe(4);
    expect(blind.open).toEqual([]);
    expect(blind.rows["L2"]?.state).toBe("reconciling");
    evm.proxy.set({});
    const seen = await world.once();
    expect(seen.open).toEqual(["state_drift warning"]);
    expect(seen.rows["L2"]?.state).toBe("failed_terminal");
  });

  it("error: a chain that was reset is exit 4 and a coverage gap, and nothing is touched", async () => {
    await evm.chain.mine(8);
    await world.once();
    const other = await openChainWorld();
    await other.chain.mine(30);
    const { payers, payees, tokens, chainId } = evm.settings();
    const block = { payers, payees, tokens, chainId, rpcUrls: [other.proxy.url], startBlock: 0 };
    world.env["EVM_CHAINS"] = JSON.stringify([block]);
    const stopped = await world.once();
    expect(stopped.exitCode).toBe(4);
    expect(stopped.open).toContain("coverage_gap critical");
    await other.close();
  });

  it("behavior: doctor asks every endpoint and reads the tokens", async () => {
    await evm.chain.mine(8);
    const { json } = await world.run("doctor");
    const { checks } = json as { checks: { name: string; status: string; seen: string }[] };
    const ours = checks.filter((one) => one.name.startsWith(SCOPE));
    expect(ours.map((one) => one.status)).toEqual(["ok", "ok", "ok", "remark"]);
    expect(ours[0]?.seen).toMatch(/^block \d+ of .*final \(safe\) \d+/);
  });
});
