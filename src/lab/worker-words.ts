/** What the laboratory and its worker processes say to each other. */
import type { Answer } from "./design.ts";

/**
 * What a worker is started with, as its first message: an address with a password is no argument.
 */
export interface Setup {
  readonly say: "setup";
  readonly databaseUrl: string;
  readonly stripeUrl: string;
  readonly table: string;
}

/** Do this operation, as an agent's tool would. */
export interface Order {
  readonly say: "order";
  readonly request: string;
  readonly intentId: string;
  readonly accountId: string;
  readonly amount: string;
  readonly destination: string;
  /** How far the laboratory's clock is ahead of the machine's, in milliseconds. */
  readonly aheadMs: number;
  /** Stop between the provider's answer and the record of it, until told to go on. */
  readonly hold: boolean;
}

/** Go on with a request that stands there. */
export interface Release {
  readonly say: "release";
  readonly request: string;
}

export type ToWorker = Setup | Order | Release;

export type FromWorker =
  | { readonly say: "ready" }
  /** The provider has answered and nothing of it is recorded yet. */
  | { readonly say: "answered"; readonly request: string }
  /** `fault`: something that the ledger does not promise; empty: none. */
  | {
      readonly say: "ended";
      readonly request: string;
      readonly answer: Answer;
      readonly fault: string;
    };
