// Holds files against the layer table and says what to do about each violation.
import path from "node:path";

import ts from "typescript";

import { AMBIENT, CORE_BUILTINS, FREE_TYPES, LAYERS, PACKAGES } from "./layer-table.ts";
import type { Layer, Place } from "./layer-table.ts";
import { lineOf, parse, walk } from "./read-files.ts";
import type { RepoFile } from "./read-files.ts";

interface Import {
  readonly from: string;
  readonly line: number;
  readonly typeOnly: boolean;
}

// Folders that "everything" leaves out: stand-ins, the timetable and the libraries.
const NAMED_ONLY: readonly string[] = ["sandbox", "demo", "jobs", "ledger", "gateway"];

/** One sentence for each violation in a file, with its place and the way out. */
export function layerViolations(file: RepoFile): readonly string[] {
  const source = parse(file);
  const folder = folderOf(file.name);
  const layer = LAYERS[folder];
  if (layer === undefined) {
    return [`${file.name}: folder ${folder} has no row in test/repo/layer-table.ts: add one`];
  }
  const found = importsOf(source).flatMap((one) => {
    const fault = importFault(file.name, folder, layer, one);
    return fault === undefined ? [] : [`${file.name}:${String(one.line)} ${fault}`];
  });
  return [...found, ...ambientViolations(file.name, source)];
}

/** The row of a file: `sources/stripe`, `store`, `bin.ts`, or `jobs`. */
function folderOf(name: string): string {
  const parts = name.split("/");
  if (parts[0] !== "src") return parts[0] ?? "";
  return parts[1] === "sources" ? parts.slice(1, 3).join("/") : (parts[1] ?? "");
}

function importsOf(source: ts.SourceFile): readonly Import[] {
  const found: Import[] = [];
  walk(source, (node) => {
    const specifier = specifierOf(node);
    if (specifier === undefined) return;
    found.push({ from: specifier, line: lineOf(source, node), typeOnly: isTypeOnly(node) });
  });
  return found;
}

function specifierOf(node: ts.Node): string | undefined {
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) {
    const at = node.moduleSpecifier;
    return at !== undefined && ts.isStringLiteral(at) ? at.text : undefined;
  }
  if (ts.isImportTypeNode(node)) {
    const { argument } = node;
    if (!ts.isLiteralTypeNode(argument) || !ts.isStringLiteral(argument.literal)) return undefined;
    return argument.literal.text;
  }
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
    const at = node.arguments[0];
    return at !== undefined && ts.isStringLiteral(at) ? at.text : undefined;
  }
  return undefined;
}

function isTypeOnly(node: ts.Node): boolean {
  if (ts.isImportTypeNode(node)) return true;
  if (ts.isExportDeclaration(node)) return node.isTypeOnly;
  if (!ts.isImportDeclaration(node)) return false;
  return node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword;
}

function importFault(name: string, folder: string, layer: Layer, one: Import): string | undefined {
  if (one.from.startsWith(".")) return folderFault(name, folder, layer, one);
  if (one.from.startsWith("node:")) {
    if (folder !== "core" || CORE_BUILTINS.includes(one.from)) return undefined;
    return `imports ${one.from}: core is pure; do this in the caller and hand the result in`;
  }
  const parts = one.from.split("/");
  const packageName = parts.slice(0, one.from.startsWith("@") ? 2 : 1).join("/");
  if (one.typeOnly && FREE_TYPES.includes(packageName)) return undefined;
  const place = PACKAGES[packageName];
  if (place === undefined) {
    return `imports ${packageName}, which has no row in test/repo/layer-table.ts: add one`;
  }
  return placeFault(name, place, `imports ${packageName}`);
}

function folderFault(name: string, folder: string, layer: Layer, one: Import): string | undefined {
  const target = path.posix.join(path.posix.dirname(name), one.from);
  // package.json and the like belong to no layer.
  if (!target.startsWith("src/") && !target.startsWith("jobs/")) {
    return target.includes("/")
      ? `imports ${target}: the product leans on src and jobs`
      : undefined;
  }
  const other = folderOf(target);
  if (other === folder || mayImport(layer, other)) return undefined;
  if (one.typeOnly && layer.types?.includes(other) === true) return undefined;
  const allowed = layer.may === "everything" ? "everything but that" : layer.may.join(", ");
  return (
    `imports ${target}: ${folder} may import ${allowed === "" ? "nothing" : allowed}. ` +
    `${layer.why} Move the shared part down to core or store, or take it as a parameter`
  );
}

function mayImport(layer: Layer, other: string): boolean {
  if (layer.also?.includes(other) === true) return true;
  if (layer.may === "everything") return !NAMED_ONLY.includes(other);
  return layer.may.includes(other);
}

function ambientViolations(name: string, source: ts.SourceFile): readonly string[] {
  const found: string[] = [];
  walk(source, (node) => {
    const what = ambientUse(node);
    const place = what === undefined ? undefined : AMBIENT[what];
    if (what === undefined || place === undefined) return;
    const fault = placeFault(name, place, `uses ${what}`);
    if (fault !== undefined) found.push(`${name}:${String(lineOf(source, node))} ${fault}`);
  });
  return found;
}

function ambientUse(node: ts.Node): string | undefined {
  if (ts.isPropertyAccessExpression(node)) {
    const text = `${node.expression.getText()}.${node.name.text}`;
    if (text === "process.env") return text;
    return text === "Date.now" ? "Date.now()" : undefined;
  }
  if (!ts.isNewExpression(node) || node.expression.getText() !== "Date") return undefined;
  return (node.arguments?.length ?? 0) === 0 ? "new Date()" : undefined;
}

function placeFault(name: string, place: Place, what: string): string | undefined {
  const inside = place.in.some((one) => (one.endsWith("/") ? name.startsWith(one) : name === one));
  if (inside) return undefined;
  return `${what}, which belongs to ${place.in.join(", ")}. ${place.why}`;
}
