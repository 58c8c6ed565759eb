/**
 * The errors of tallyd. The class decides what becomes of it: ConfigError ends a command with exit
 * code 2, UnreadableError with 4 (something could not be read, so health is unknown), anything else
 * is a fault of tallyd itself and ends with 1.
 */
export class ConfigError extends Error {
  /** One sentence per fault: the setting's name, what was seen, what is allowed. */
  readonly faults: readonly string[];

  constructor(faults: readonly string[], options?: ErrorOptions) {
    super(faults.join("\n"), options);
    this.name = "ConfigError";
    this.faults = faults;
  }
}

/**
 * What a person asked for cannot be done as things are, and neither settings nor command line are
 * at fault: exit code 2 all the same. `hints`: what can be done instead.
 */
export class RequestError extends Error {
  readonly code: "not_known" | "not_possible";
  readonly hints: readonly string[];

  constructor(code: RequestError["code"], message: string, hints: readonly string[]) {
    super(message);
    this.name = "RequestError";
    this.code = code;
    this.hints = hints;
  }
}

/** Why a source could not be read; decides whether waiting can help. */
export type UnreadableCode =
  | "auth"
  | "permission"
  | "rate_limit"
  | "network"
  | "server"
  | "shape"
  | "database"
  | "rights"
  | "locked";

export class UnreadableError extends Error {
  readonly code: UnreadableCode;
  /** Milliseconds the other side asked us to wait; null when it did not say. */
  readonly retryAfterMs: number | null;

  constructor(
    code: UnreadableCode,
    message: string,
    options: ErrorOptions & { readonly retryAfterMs?: number } = {},
  ) {
    super(message, options);
    this.name = "UnreadableError";
    this.code = code;
    this.retryAfterMs = options.retryAfterMs ?? null;
  }
}

/** A state that the code holds to be impossible. */
export class BugError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(`Bug in tallyd: ${message}`, options);
    this.name = "BugError";
  }
}

/** Fails loudly when `condition` does not hold. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new BugError(message);
}

/** Closes a switch over a union: the compiler refuses a forgotten member. */
export function unreachable(value: never): never {
  throw new BugError(`unexpected value ${JSON.stringify(value)}`);
}
