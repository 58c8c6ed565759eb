/** A shop in a process of its own that never answers, to be killed: `tsx dying-shop.ts JSON`. */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

import { openShop } from "./world.ts";

interface Where {
  readonly dbUrl: string;
  readonly schema: string;
}

const FILE = fileURLToPath(import.meta.url);

/** Starts it. */
export async function openDyingShop(where: Where): Promise<{
  readonly url: string;
  /** As a machine that loses power does it. */
  readonly kill: () => Promise<void>;
}> {
  const child = fork(FILE, [JSON.stringify(where)], { execArgv: ["--import", "tsx"] });
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const url = await new Promise<string>((resolve, reject) => {
    child.once("message", (message) => resolve(message as string));
    child.once("exit", (code) => reject(new Error(`the shop ended with ${String(code)}`)));
  });
  return {
    url,
    kill: () => {
      child.kill("SIGKILL");
      return gone;
    },
  };
}

if (process.argv[1] === FILE) {
  const where = JSON.parse(process.argv[2] ?? "") as Where;
  const shop = await openShop({ ...where, handler: () => undefined });
  process.send?.(shop.url);
  process.on("disconnect", () => process.exit(0));
}
