import { visibleLine } from "../core/visible.ts";

/** Rows as aligned columns, the first row as the head; empty rows give an empty text. */
export function tableText(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return "";
  const all = [head, ...rows].map((row) => row.map(visibleLine));
  const widths = head.map((_name, column) =>
    Math.max(...all.map((row) => (row[column] ?? "").length)),
  );
  return all
    .map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "))
    .map((line) => line.trimEnd())
    .join("\n");
}
