/**
 * JSON as tallyd prints it: amounts (bigint) as strings, times as ISO 8601 in UTC. `indent`
 * spaces a level; 0 puts all on one line.
 */
export function jsonText(value: unknown, indent = 0): string {
  const text = JSON.stringify(
    value,
    (_key, item: unknown) => (typeof item === "bigint" ? item.toString() : item),
    indent,
  ) as string | undefined;
  return text ?? "null";
}
