/**
 * The first block of a chain is what every later answer is measured by, so the first one to speak
 * does not decide it alone: endpoints that disagree are outvoted, or nothing is believed.
 */
import type { Endpoint } from "./endpoints.ts";
import type { Usable } from "./survey.ts";

/** Whom to read from when nothing is known of a chain yet. */
export type FirstContact =
  | {
      readonly agreed: true;
      /** Endpoints of one chain, in their order. */
      readonly usable: readonly Usable[];
      readonly strangers: readonly { readonly endpoint: Endpoint; readonly seen: string }[];
      /** Only one endpoint said it. */
      readonly alone: boolean;
    }
  | { readonly agreed: false; readonly reason: string };

/** The endpoints that more than half of all agree with. */
export function firstContact(usable: readonly Usable[]): FirstContact {
  const hashes = [...new Set(usable.map((one) => one.genesis.hash))];
  const of = (hash: string): Usable[] => usable.filter((one) => one.genesis.hash === hash);
  const chosen = hashes.find((hash) => of(hash).length * 2 > usable.length);
  if (chosen === undefined && usable.length > 0) {
    const said = usable.map((one) => `${one.endpoint.name} says ${one.genesis.hash}`);
    return { agreed: false, reason: `which chain is it? For block 0 ${said.join(", ")}` };
  }
  const others = usable.filter((one) => one.genesis.hash !== chosen);
  return {
    agreed: true,
    usable: chosen === undefined ? [] : of(chosen),
    strangers: others.map(({ endpoint, genesis }) => ({
      endpoint,
      seen: `its block 0 is ${genesis.hash} and not ${String(chosen)}: another chain`,
    })),
    alone: usable.length === 1,
  };
}
