/**
 * What a caller of the ledger has to tell apart:
 * - `failed`: final, nothing was paid; ask a person or choose another way to pay
 * - `retryable`: provably nothing ran; call again later, the key stays the same
 * - `unknown`: the outcome is not known; call again later, it is looked up and never sent blindly
 * - `pending`: the provider has it and is not done (a bank debit, an authentication); call again
 * - `in_progress`: another worker holds it; call again
 * - `conflict`: row, key and provider contradict each other; a person has to look
 * - `not_found`: no such intent is committed
 * - `invalid`: the call itself is wrong; nothing was done
 */
export type LedgerCode =
  | "failed"
  | "retryable"
  | "unknown"
  | "pending"
  | "in_progress"
  | "conflict"
  | "not_found"
  | "invalid";

/** Anything that can stand in a stored response. */
export type Json =
  | string
  | number
  | boolean
  | null
  | readonly Json[]
  | { readonly [name: string]: Json | undefined };

/** A JSON object. */
export type JsonObject = Readonly<Record<string, Json | undefined>>;

/** Every refusal of the ledger. */
export class LedgerError extends Error {
  readonly code: LedgerCode;
  readonly intentId: string | null;
  /** Milliseconds after which another call can help; `null`: it cannot, or nobody can say. */
  readonly retryAfterMs: number | null;
  /** What is stored about a failure; `null`: nothing. */
  readonly response: JsonObject | null;

  constructor(
    code: LedgerCode,
    message: string,
    options: ErrorOptions & {
      readonly intentId?: string;
      readonly retryAfterMs?: number | null;
      readonly response?: JsonObject | null;
    } = {},
  ) {
    super(message, options);
    this.name = "LedgerError";
    this.code = code;
    this.intentId = options.intentId ?? null;
    this.retryAfterMs = options.retryAfterMs ?? null;
    this.response = options.response ?? null;
  }
}
