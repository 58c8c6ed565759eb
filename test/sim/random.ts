/** A small seeded generator: the same seed gives the same world on every machine. */
export interface Random {
  /** Whole number, both ends included. */
  readonly int: (from: number, to: number) => number;
  /** True with probability `p`. */
  readonly chance: (p: number) => boolean;
  readonly pick: <T>(from: readonly T[]) => T;
  /** A new array in another order. */
  readonly shuffle: <T>(items: readonly T[]) => T[];
}

const TWO_TO_32 = 4_294_967_296;

/** mulberry32: 32 bits of state are plenty for a world of some hundred draws. */
export function random(seed: number): Random {
  // Neighbouring seeds must not give worlds that look alike.
  let state = Math.imul(seed + 1, 0x9e3779b1) >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / TWO_TO_32;
  };
  const int = (from: number, to: number): number => from + Math.floor(next() * (to - from + 1));
  return {
    int,
    chance: (p) => next() < p,
    pick: (from) => {
      if (from.length === 0) throw new RangeError("nothing to pick from");
      return from[int(0, from.length - 1)]!;
    },
    shuffle: (items) => {
      const mixed = [...items];
      for (let index = mixed.length - 1; index > 0; index -= 1) {
        const other = int(0, index);
        [mixed[index], mixed[other]] = [mixed[other]!, mixed[index]!];
      }
      return mixed;
    },
  };
}
