/**
 * Compiles src/sandbox/chain/contracts and writes what the sandbox deploys: run it after a
 * change.
 */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

import solc from "solc";

const FOLDER = path.resolve(import.meta.dirname, "../../src/sandbox/chain/contracts");

/** What is kept of a contract. */
export interface Artifact {
  readonly abi: readonly unknown[];
  readonly bytecode: string;
}

/** Compiles the contracts; throws on any error of the compiler. */
export function compileContracts(): Record<string, Artifact> {
  const input = {
    language: "Solidity",
    sources: { "Token.sol": { content: readFileSync(path.join(FOLDER, "Token.sol"), "utf8") } },
    settings: {
      optimizer: { enabled: true, runs: 200 },
      // No hash of the source at the end: comments may change without a new artifact.
      metadata: { bytecodeHash: "none", appendCBOR: false },
      outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } },
    },
  };
  const compile = solc.compile as (source: string) => string;
  const output = JSON.parse(compile(JSON.stringify(input))) as {
    errors?: { severity: string; formattedMessage: string }[];
    contracts: Record<
      string,
      Record<string, { abi: unknown[]; evm: { bytecode: { object: string } } }>
    >;
  };
  const errors = (output.errors ?? []).filter((one) => one.severity === "error");
  if (errors.length > 0) throw new Error(errors.map((one) => one.formattedMessage).join("\n"));
  return Object.fromEntries(
    Object.entries(output.contracts["Token.sol"] ?? {}).map(([name, contract]) => [
      name,
      { abi: contract.abi, bytecode: `0x${contract.evm.bytecode.object}` },
    ]),
  );
}

/** Where the artifacts lie. */
export const ARTIFACTS = path.join(FOLDER, "artifacts.json");

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(ARTIFACTS, `${JSON.stringify(compileContracts(), null, 2)}\n`);
}
