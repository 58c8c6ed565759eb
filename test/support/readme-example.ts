/** Examples of the README, taken from it and run as they stand there. */
import { readFileSync } from "node:fs";

import ts from "typescript";

const README = readFileSync(new URL("../../README.md", import.meta.url), "utf8");

/** The text of a section, up to the next one of its level. */
export function readmeSection(heading: string): string {
  const [, after] = README.split(`\n## ${heading}\n`);
  if (after === undefined) throw new Error(`the README has no section "${heading}"`);
  return after.split("\n## ")[0] ?? "";
}

/**
 * Runs the nth TypeScript example of a section as a module, and gives what it exports. `modules`:
 * what its imports get, by name; an import that is not among them throws.
 */
export function runExample(
  heading: string,
  index: number,
  modules: Readonly<Record<string, unknown>>,
): unknown {
  const examples = [...readmeSection(heading).matchAll(/```ts\n([^]*?)```/g)];
  const source = examples[index]?.[1];
  if (source === undefined) throw new Error(`"${heading}" has ${examples.length} examples`);
  const { outputText } = ts.transpileModule(source, {
    compilerOptions: { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2023 },
  });
  const exported = {};
  const load = (name: string): unknown => {
    if (!(name in modules)) throw new Error(`the example imports ${name}, which is not given`);
    return modules[name];
  };
  const run = Reflect.construct(Function, ["exports", "require", outputText]) as (
    exports: object,
    require: unknown,
  ) => void;
  run(exported, load);
  return exported;
}
