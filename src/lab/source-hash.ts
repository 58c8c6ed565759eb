import { createHash } from "node:crypto";
import { readFile, readdir } from "node:fs/promises";
import path from "node:path";

/** Which code made a result. */
export interface SourceHash {
  /** SHA-256, in hex, over name and bytes of each file, in the order of their names. */
  readonly sha256: string;
  /** Paths below `src`. */
  readonly files: readonly string[];
}

// What decides a result: the designs and schedules, the ledger, the provider that it talks to.
const FOLDERS = ["lab", "ledger", "sandbox/stripe"];
const SCRIPT = /^(?!.*\.d\.ts$).*\.(ts|js)$/;

/** The hash of the code that is running, as it lies there: sources, or their build. */
export async function sourceHash(): Promise<SourceHash> {
  const root = path.join(import.meta.dirname, "..");
  const names = await Promise.all(
    FOLDERS.map(async (folder) => {
      const found = await readdir(path.join(root, folder), { recursive: true });
      return found
        .filter((name) => SCRIPT.test(name))
        .map((name) => `${folder}/${name.replaceAll(path.sep, "/")}`);
    }),
  );
  const files = names.flat().sort();
  const hash = createHash("sha256");
  for (const file of files) {
    hash.update(`${file}\0`).update(await readFile(path.join(root, file)));
  }
  return { sha256: hash.digest("hex"), files };
}
