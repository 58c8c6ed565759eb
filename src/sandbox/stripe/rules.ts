/** What decides whether a rule strikes, on top of its own matching. */
export interface Countdown {
  /** Strikes from the nth match on (1 is the next one, the default). */
  readonly nth?: number | undefined;
  /** How often it strikes (default 1); Infinity goes on until the rules are cleared. */
  readonly count?: number | undefined;
}

/** Rules in force at once; more means that a test forgot to clear them. */
const RULES_MAX = 10_000;

interface Armed<T> {
  readonly rule: T;
  seen: number;
  struck: number;
}

/** Holds rules that strike a counted number of times and are then gone. */
export class RuleBook<T extends Countdown> {
  #armed: Armed<T>[] = [];

  get size(): number {
    return this.#armed.length;
  }

  /** Adds a rule; the returned function withdraws it. */
  add(rule: T): () => void {
    if (this.#armed.length >= RULES_MAX) throw new RangeError("too many rules in force");
    const armed: Armed<T> = { rule, seen: 0, struck: 0 };
    this.#armed.push(armed);
    return () => {
      this.#armed = this.#armed.filter((other) => other !== armed);
    };
  }

  /** Withdraws every rule. */
  clear(): void {
    this.#armed = [];
  }

  /** The rules that strike now; each match counts, whether it strikes or not. */
  take(matches: (rule: T) => boolean): readonly T[] {
    if (this.#armed.length === 0) return [];
    const striking: T[] = [];
    for (const armed of this.#armed) {
      if (!matches(armed.rule)) continue;
      armed.seen += 1;
      if (armed.seen < (armed.rule.nth ?? 1)) continue;
      armed.struck += 1;
      striking.push(armed.rule);
    }
    this.#armed = this.#armed.filter((armed) => armed.struck < (armed.rule.count ?? 1));
    return striking;
  }
}

/** Whether `value` fits a pattern in which `*` stands for any characters. No pattern fits all. */
export function fits(pattern: string | RegExp | undefined, value: string): boolean {
  if (pattern === undefined) return true;
  if (typeof pattern !== "string") return new RegExp(pattern.source, pattern.flags).test(value);
  const parts = pattern.split("*");
  const first = parts[0] ?? "";
  if (parts.length === 1) return value === pattern;
  if (!value.startsWith(first)) return false;
  let from = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = value.indexOf(part, from);
    if (found < 0) return false;
    from = found + part.length;
  }
  const last = parts.at(-1) ?? "";
  return value.length - last.length >= from && value.endsWith(last);
}
