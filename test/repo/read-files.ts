// Reads the files of the repository for the tests about it.
import { readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

import ts from "typescript";

/** A file of the repository; the name is relative to its root, with forward slashes. */
export interface RepoFile {
  readonly name: string;
  readonly text: string;
}

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** All files below the folders whose names end in one of the endings, in the order of names. */
export function filesBelow(
  folders: readonly string[],
  endings: readonly string[],
): readonly RepoFile[] {
  const names = folders.flatMap((folder) => namesBelow(folder));
  return names
    .filter((name) => endings.some((ending) => name.endsWith(ending)))
    .sort()
    .map((name) => ({ name, text: readFileSync(path.join(ROOT, name), "utf8") }));
}

/** A folder that does not exist holds no files; the tests say where that is a fault. */
function namesBelow(folder: string): string[] {
  try {
    const entries = readdirSync(path.join(ROOT, folder), { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => path.relative(ROOT, path.join(entry.parentPath, entry.name)))
      .map((name) => name.replaceAll(path.sep, "/"));
  } catch {
    return [];
  }
}

/** The syntax tree of a TypeScript file, with parents. */
export function parse(file: RepoFile): ts.SourceFile {
  return ts.createSourceFile(file.name, file.text, ts.ScriptTarget.ES2023, true);
}

/** Calls `see` for every node of the tree, parents before children. */
export function walk(node: ts.Node, see: (node: ts.Node) => void): void {
  see(node);
  ts.forEachChild(node, (child) => {
    walk(child, see);
  });
}

/** The line of a node, counted from one. */
export function lineOf(source: ts.SourceFile, node: ts.Node): number {
  return source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1;
}
