import { ConfigError } from "../../core/errors.ts";
import type { RunResult } from "../../sources/stripe/run-scopes.ts";
import { backfill as backfillStripe } from "../../sources/stripe/backfill.ts";
import { fastUntilQuiet } from "../../daemon/fast-path.ts";
import { scanChains } from "../../daemon/chain-steps.ts";
import { readLocal } from "../../daemon/steps.ts";
import type { StepResult } from "../../daemon/steps.ts";
import type { Tallyd } from "../../daemon/tallyd.ts";
import type { Command, CommandContext } from "../command.ts";
import { UsageError } from "../failure.ts";
import { countsText, verdictOf } from "../verdict.ts";
import { parseSince, parseTime } from "../when.ts";
import { withTallyd } from "../with-tallyd.ts";

/** `tallyd backfill` */
export const backfill: Command = {
  name: "backfill",
  summary: "read the past: charges, payment intents, refunds and disputes since a time",
  usage: ["--since 90d|2026-05-04 [--until 2026-06-01]"],
  details: [
    "May be stopped and started again: what is proven to be read is not read twice.",
    "Afterwards what was read is matched and judged.",
  ],
  options: {
    since: { type: "string", value: "90d|DAY|TIME", help: "where to begin; required" },
    until: { type: "string", value: "DAY|TIME", help: "where to end; default: now" },
  },
  argsMax: 0,
  run: (context) => {
    const range = rangeOf(context);
    return withTallyd(context, async (tallyd) => {
      const local = await readLocal(tallyd, "sweep");
      const chains = await readChains(tallyd, context, range);
      const read = await readStripe(tallyd, context, range);
      const judged = await fastUntilQuiet(tallyd, context.signal);
      const failures = [...local.failures, ...chains.failures, ...read.failed];
      const verdict = await verdictOf(tallyd, failures);
      const { objects, pages } = read;
      return {
        exitCode: verdict.exitCode,
        json: {
          ...{ since: range.since, until: range.until, objects, pages },
          ...{ judged, open: verdict.open, chains: chains.counts, failures },
        },
        text: [
          `read ${String(objects)} objects in ${String(pages)} pages`,
          ...(tallyd.chains.size === 0 ? [] : [`chains: ${countsText({ ...chains.counts })}`]),
          countsText({ ...judged }),
          ...verdict.lines,
        ].join("\n"),
      };
    });
  },
};

interface Range {
  readonly since: Date;
  /** Null: as new as is settled. */
  readonly until: Date | null;
}

function rangeOf({ flags, clock }: CommandContext): Range {
  const { since, until } = flags;
  if (typeof since !== "string") {
    throw new UsageError(["--since is missing: --since 90d, or a day such as --since 2026-05-04"]);
  }
  const now = clock.now();
  const range = {
    since: parseSince(since, "--since", now),
    until: typeof until === "string" ? parseTime(until, "--until") : null,
  };
  if (range.since >= (range.until ?? now)) {
    const end = range.until?.toISOString() ?? "now";
    throw new UsageError([`--since ${range.since.toISOString()} is not before the end (${end})`]);
  }
  return range;
}

/** Extends what is read of the chains back to the beginning of the range. */
async function readChains(
  tallyd: Tallyd,
  { progress, signal }: CommandContext,
  range: Range,
): Promise<StepResult> {
  const read = await scanChains(tallyd, {
    signal,
    wait: true,
    since: range.since,
    onProgress: (scope, { done, total }) => {
      progress.show({ label: `blocks of ${scope}`, done, total, fraction: done / total });
    },
  });
  progress.finish();
  return read;
}

async function readStripe(
  tallyd: Tallyd,
  { progress, signal }: CommandContext,
  range: Range,
): Promise<RunResult & { readonly objects: number; readonly pages: number }> {
  const { stripe } = tallyd;
  // Chains alone are enough to read back.
  if (stripe === null && tallyd.chains.size > 0) {
    return { ok: true, objects: 0, pages: 0, failed: [] };
  }
  if (stripe === null) {
    throw new ConfigError(["STRIPE_API_KEY: not set; allowed: a restricted key with read rights"]);
  }
  const result = await backfillStripe(
    { ...tallyd, client: stripe },
    {
      since: range.since,
      ...(range.until === null ? {} : { until: range.until }),
      signal,
      onProgress: ({ objects, fraction, scope, resource }) => {
        progress.show({ label: `${resource} of ${scope}`, done: objects, total: null, fraction });
      },
    },
  );
  progress.finish();
  return result;
}
