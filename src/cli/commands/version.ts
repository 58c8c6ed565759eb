import { EXIT } from "../command.ts";
import type { Command } from "../command.ts";
import { packageVersion } from "../version.ts";

/** `tallyd version` */
export const version: Command = {
  name: "version",
  summary: "print the versions of tallyd and of Node.js",
  usage: [],
  details: [],
  options: {},
  argsMax: 0,
  run: () => {
    const json = { tallyd: packageVersion(), node: process.version };
    const text = `tallyd ${json.tallyd} (Node.js ${json.node})`;
    return Promise.resolve({ exitCode: EXIT.ok, json, text });
  },
};
