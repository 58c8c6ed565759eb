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
        const help = near.length === 0 ? "" : ` Near it: ${near.join(", ")}.`;
        throw new UsageError([
          `nothing is known of "${id}": an id of a row, charge, payment intent, refund, dispute, ` +
            `event or incident, a key or a reference is understood.${help}`,
        ]);
      }
      return { exitCode: EXIT.ok, json: explained, text: explainText(explained) };
    });
  },
};
