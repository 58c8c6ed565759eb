import { ApiError, idempotencyMismatch, invalidParam } from "./errors.ts";

/** Stripe prunes keys once they are at least 24 hours old. */
export const KEY_AGE_MAX_MS = 24 * 60 * 60 * 1_000;
/** Stripe's limit on the length of a key. */
const KEY_LENGTH_MAX = 255;
/** Keys kept at once, so that a long benchmark does not eat the memory; the oldest goes first. */
const KEYS_MAX = 500_000;

/** An answer as it is replayed. */
export interface SavedAnswer {
  readonly status: number;
  readonly body: string;
  readonly requestId: string;
}

interface Kept {
  readonly path: string;
  readonly params: string;
  readonly since: number;
  answer: SavedAnswer | null;
}

/** A key's claim on one request. */
export interface KeyClaim {
  /** Set when the key already has an answer: replay it and run nothing. */
  readonly replay: SavedAnswer | null;
  /** Keeps the answer for replays. */
  readonly save: (answer: SavedAnswer) => void;
  /** Frees the key: the request failed before its endpoint ran. */
  readonly release: () => void;
}

/** What identifies a request under its key. */
export interface KeyedRequest {
  /** Account and mode; a key means nothing outside them. */
  readonly scope: string;
  readonly key: string;
  readonly path: string;
  /** Canonical text of the parameters. */
  readonly params: string;
  /** Sandbox time in ms. */
  readonly now: number;
}

/** The keys of one sandbox. */
export class IdempotencyKeys {
  readonly #kept = new Map<string, Kept>();

  get size(): number {
    return this.#kept.size;
  }

  /**
   * Claims a key. Throws 409 while another request holds it, 400 when it belongs to other
   * parameters or another endpoint (Stripe, "Idempotent requests" and the low-level error guide).
   */
  claim(request: KeyedRequest): KeyClaim {
    if (request.key.length > KEY_LENGTH_MAX) {
      throw invalidParam(`Idempotency keys may be at most ${String(KEY_LENGTH_MAX)} characters`);
    }
    const id = `${request.scope} ${request.key}`;
    const kept = this.#kept.get(id);
    if (kept !== undefined && request.now - kept.since < KEY_AGE_MAX_MS) {
      return { replay: replayOf(kept, request), save: () => undefined, release: () => undefined };
    }
    const made: Kept = {
      path: request.path,
      params: request.params,
      since: request.now,
      answer: null,
    };
    this.#kept.delete(id);
    this.#kept.set(id, made);
    this.#prune(request.now);
    return {
      replay: null,
      save: (answer) => {
        made.answer = answer;
      },
      release: () => {
        if (this.#kept.get(id) === made) this.#kept.delete(id);
      },
    };
  }

  #prune(now: number): void {
    for (const [id, kept] of this.#kept) {
      const expired = now - kept.since >= KEY_AGE_MAX_MS;
      if (!expired && this.#kept.size <= KEYS_MAX) return;
      this.#kept.delete(id);
    }
  }
}

function replayOf(kept: Kept, request: KeyedRequest): SavedAnswer {
  if (kept.answer === null) {
    throw new ApiError(409, {
      type: "invalid_request_error",
      code: "idempotency_key_in_use",
      message: "Another request that uses this idempotency key is still in progress.",
    });
  }
  if (kept.path !== request.path) {
    throw idempotencyMismatch(
      "Keys for idempotent requests can only be used for the same endpoint they were first used " +
        `for ('${request.path}' vs '${kept.path}'). Try another key than '${request.key}'.`,
    );
  }
  if (kept.params !== request.params) {
    throw idempotencyMismatch(
      "Keys for idempotent requests can only be used with the same parameters they were first " +
        `used with. Try another key than '${request.key}'.`,
    );
  }
  return kept.answer;
}
