import { RequestError } from "../../core/errors.ts";
import { watchedScopes } from "../../core/scope.ts";
import { explain as explainId, nearestIds } from "../../explain/explain.ts";
import { explainText } from "../../explain/text.ts";
import { presentIncident } from "../../incident/present.ts";
import { EXIT } from "../command.ts";
import type { Command } from "../command.ts";
import { UsageError } from "../failure.ts";
import { withDatabase } from "../with-database.ts";

/** `tallyd explain` */
export const explain: Command = {
  name: "explain",
  summary: "everything known about one purchase",
  usage: ["ID"],
  details: [
    "ID is the id of a row, charge, payment intent, refund, dispute, event or incident, or an",
    "idempotency key, a reference or an operation. Only what is stored is shown; no source is asked.",
  ],
  options: {},
  argsMax: 1,
  run: (context) => {
    const id = context.args[0] ?? "";
    if (id === "") throw new UsageError(["explain needs an id: tallyd explain ID"]);
    return withDatabase(context, async ({ pool }, settings) => {
      const deps = {
        db: pool,
        now: context.clock.now(),
        rules: settings.rules,
        scopes: watchedScopes(settings),
        presentIncident,
      };
      const explained = await explainId(deps, id);
      if (explained === null) {
        const near = await nearestIds(pool, id);
        throw new RequestError("not_known", `nothing is known of "${id}"`, [
          ...(near.length === 0 ? [] : [`near it: ${near.join(", ")}`]),
          "an id of a row, charge, payment intent, refund, dispute, event or incident is " +
            "understood, and a key or a reference",
          "only what was read is known: see tallyd once and tallyd backfill",
        ]);
      }
      return { exitCode: EXIT.ok, json: explained, text: explainText(explained) };
    });
  },
};
