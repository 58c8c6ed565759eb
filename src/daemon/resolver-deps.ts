/** Puts the resolver together with Stripe's reader and the team's table. */
import { UnreadableError } from "../core/errors.ts";
import type { LocalSide, ResolveDeps, StripeSide } from "../resolve/deps.ts";
import { lookLocal } from "../sources/local/look.ts";
import type { ReaderDeps } from "../sources/local/read-rows.ts";
import { casWrite } from "../sources/local/write-row.ts";
import type { StripeReader } from "../sources/stripe/client.ts";
import { chainSide } from "./chain-steps.ts";
import { lookAtLists } from "./look-lists.ts";
import { lookDirect } from "../sources/stripe/lookup.ts";
import { isReadableId } from "../sources/stripe/stripe-object.ts";
import { ensureCoverage } from "../sources/stripe/walk-lists.ts";
import type { Tallyd } from "./tallyd.ts";

/** What the resolver is made of, beside the open tallyd. */
export interface ResolverParts {
  readonly local: ReaderDeps;
  /** Places everything that changed. */
  readonly place: () => Promise<void>;
}

/** The resolver's dependencies. */
export function resolverDeps(tallyd: Tallyd, parts: ResolverParts): ResolveDeps {
  const { pool, settings, log, now, stripe } = tallyd;
  return {
    pool,
    now,
    mode: settings.resolve,
    rules: { ...settings.rules, metadataKey: settings.stripe.metadataKey },
    stripe: stripe === null ? null : stripeSide(tallyd, stripe),
    chain: (scope) => chainSide(tallyd, scope),
    local: localSide(tallyd, parts.local),
    place: parts.place,
    log,
  };
}

function stripeSide(tallyd: Tallyd, client: StripeReader): StripeSide {
  const deps = { ...tallyd, client };
  return {
    ensureCoverage: async (input) => {
      const { failed } = await ensureCoverage(deps, input);
      const [failure] = failed;
      if (failure !== undefined) throw new UnreadableError(failure.code, failure.message);
    },
    look: (scope, id) => lookDirect(deps, scope, id),
    lookAtLists: (scope, range) => lookAtLists(deps, scope, range),
    isReadable: isReadableId,
  };
}

function localSide(tallyd: Tallyd, local: ReaderDeps): LocalSide {
  return {
    reread: async (intentIds) => {
      const marks = { chargeIds: [], keys: [], intentIds, references: [], nonces: [] };
      const { rows } = await lookLocal({ ...local, own: tallyd.pool }, marks);
      return rows;
    },
    write: (write) => casWrite(local, write),
    touchKnown: local.shape.fields.updatedAt !== null,
  };
}
