import { readFileSync } from "node:fs";
import path from "node:path";

import { packageSqlDir } from "../store/sql-files.ts";

/** Version of this package, from its package.json. */
export function packageVersion(): string {
  const file = path.join(packageSqlDir(), "..", "package.json");
  const parsed: unknown = JSON.parse(readFileSync(file, "utf8"));
  const has = typeof parsed === "object" && parsed !== null && "version" in parsed;
  return has && typeof parsed.version === "string" ? parsed.version : "unknown";
}
