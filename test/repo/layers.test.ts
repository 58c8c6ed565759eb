// Goal: the parts lean on each other only as test/repo/layer-table.ts says.
// Method: reads every import below src and jobs; planted violations prove that it would see one.
import { describe, expect, test } from "vitest";

import { layerViolations } from "./layer-rules.ts";
import { LAYERS } from "./layer-table.ts";
import { filesBelow } from "./read-files.ts";

/** What the rules say about one line in a file of this name. */
function saidAbout(name: string, text: string): string {
  return layerViolations({ name, text }).join("\n");
}

describe("layers", () => {
  test("default", () => {
    const files = filesBelow(["src", "jobs"], [".ts"]);
    expect(files.length).toBeGreaterThan(0);
    expect(files.flatMap((file) => layerViolations(file))).toEqual([]);
  });

  test.each([
    ["src/core/a.ts", `import { openPool } from "../store/pool.ts";`],
    ["src/core/a.ts", `import { readFile } from "node:fs/promises";`],
    ["src/store/a.ts", `export { b } from "../detect/b.ts";`],
    ["src/sources/stripe/a.ts", `import { b } from "../local/b.ts";`],
    ["src/resolve/a.ts", `import { b } from "../sources/stripe/b.ts";`],
    ["src/cli/a.ts", `const b = await import("../sandbox/b.ts");`],
    ["src/alert/a.ts", `import { b } from "../../jobs/b.ts";`],
    ["src/alert/a.ts", `import { b } from "../../test/support/b.ts";`],
    ["src/sandbox/a.ts", `import type { B } from "../store/b.ts";`],
    ["jobs/a.ts", `import { b } from "../src/cli/b.ts";`],
    ["src/match/a.ts", `import pg from "pg";`],
    ["src/detect/a.ts", `import Stripe from "stripe";`],
    ["src/alert/a.ts", `import { IncomingWebhook } from "@slack/webhook";`],
    ["src/http/a.ts", `import { keccak256 } from "viem/utils";`],
    ["src/store/a.ts", `import { z } from "zod";`],
    ["src/store/a.ts", `import lodash from "lodash";`],
    ["src/store/a.ts", `const port = process.env.PORT;`],
    ["src/store/a.ts", `const now = new Date();`],
    ["src/store/a.ts", `const now = Date.now();`],
    ["src/unheard/a.ts", ``],
  ])("behavior: sees in %s: %s", (name, text) => {
    expect(saidAbout(name, text)).toContain(name);
  });

  test.each([
    ["src/store/a.ts", `import type { Pool } from "pg"; import { b } from "../core/b.ts";`],
    ["src/resolve/a.ts", `import type { B } from "../sources/stripe/b.ts";`],
    ["src/demo/a.ts", `import { b } from "../sandbox/b.ts"; const now = new Date();`],
    ["src/daemon/a.ts", `import { b } from "../../jobs/b.ts";`],
    ["src/store/a.ts", `const then = new Date(0); const text = "process.env";`],
    ["src/cli/version.ts", `import info from "../../package.json" with { type: "json" };`],
  ])("behavior: allows in %s: %s", (name, text) => {
    expect(saidAbout(name, text)).toBe("");
  });

  test("behavior: a message names the place, the rule and the way out", () => {
    const said = saidAbout("src/core/a.ts", `\nimport { openPool } from "../store/pool.ts";`);
    expect(said).toContain("src/core/a.ts:2 imports src/store/pool.ts: core may import nothing.");
    expect(said).toContain("Move the shared part down");
  });

  test("behavior: every row gives a reason", () => {
    expect(Object.values(LAYERS).filter((layer) => layer.why.length < 20)).toEqual([]);
  });
});
