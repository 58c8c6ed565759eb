import { createHash } from "node:crypto";

/** Makes ids that are unique in one sandbox. */
export interface IdSource {
  /** `pi_` and 24 letters or digits; ids carry no order, as at Stripe. */
  readonly next: (prefix: string) => string;
}

const LENGTH = 24;

/** Ids are hashes of a seed and a counter: equal seeds give equal ids, so a run can be repeated. */
export function createIds(seed: string): IdSource {
  let counter = 0;
  return {
    next: (prefix) => {
      counter += 1;
      const hash = createHash("sha256")
        .update(`${seed}:${String(counter)}`)
        .digest("base64");
      return `${prefix}_${hash.replaceAll(/[+/=]/g, "x").slice(0, LENGTH)}`;
    },
  };
}
