/** Makes ids that are unique in one sandbox. */
export interface IdSource {
  /** `pi_` and 24 letters or digits; ids carry no order, as at Stripe. */
  readonly next: (prefix: string) => string;
}

const LENGTH = 24;
const RADIX = 36;
/** Digits of a 32-bit number in that radix. */
const WORD_LENGTH = 7;
/** Odd, so that multiplying by it permutes the 32-bit numbers: counters never collide. */
const SCRAMBLE = 0x9e3779b1;

function word(value: number): string {
  return (value >>> 0).toString(RADIX).padStart(WORD_LENGTH, "0");
}

/** A number from a text (FNV-1a), never zero. */
function seedNumber(seed: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < seed.length; index += 1) {
    hash = Math.imul(hash ^ seed.charCodeAt(index), 0x01000193);
  }
  return hash >>> 0 || 1;
}

/**
 * Ids from a seed and a counter: equal seeds give equal ids, so a run can be repeated. The counter
 * is scrambled and the rest is a xorshift sequence; both are cheap, for seeding in bulk.
 */
export function createIds(seed: string): IdSource {
  let counter = 0;
  let state = seedNumber(seed);
  const random = (): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state;
  };
  return {
    next: (prefix) => {
      counter += 1;
      const own = word(Math.imul(counter, SCRAMBLE));
      const rest = word(random()) + word(random()) + word(random());
      return `${prefix}_${own}${rest.slice(0, LENGTH - WORD_LENGTH)}`;
    },
  };
}
