/**
 * `tallyd/ledger`: what a team's writer needs so that no operation is paid twice. Everything that
 * the package exports is named here; nothing of the daemon is used, and it uses nothing of this.
 */
export { executePayment } from "./execute.ts";
export type { ExecuteOptions } from "./turns.ts";
export type { ExecuteDeps, Payment, StepName } from "./conclude.ts";
export { LedgerError } from "./errors.ts";
export type { Json, JsonObject, LedgerCode } from "./errors.ts";
export { fingerprintOf } from "./fingerprint.ts";
export type { Material } from "./fingerprint.ts";
export type { Db, LedgerIntent, Operation, TableDeps } from "./intent.ts";
export { LIMITS } from "./limits.ts";
export type { Limits } from "./limits.ts";
export { mintIntent } from "./mint.ts";
export type { Minted, MintInput } from "./mint.ts";
export { keyProtection, keyReusable, nextStep } from "./protection.ts";
export type { KeyAnswer, KeyUse, NextStep, Protection } from "./protection.ts";
export type { CallDeps } from "./stripe-call.ts";
export type { StripeClient, StripeObject } from "./stripe-client.ts";
export { ledgerTableSql, readIntent } from "./table.ts";
export { payX402 } from "./x402.ts";
export type { X402Deps } from "./x402.ts";
export type { X402StepName } from "./x402-end.ts";
export type { ChainProvider, Finality } from "./x402-chain.ts";
export type { X402Signer } from "./x402-sign.ts";
