/** Evidence for a terminal: one fact a line, what belongs together indented below its name. */

// A long page; the JSON has all of it.
const LINES_MAX = 200;
// Evidence is made flat; what is deeper than this would stand at the right edge.
const DEPTH_MAX = 6;
const STEP = "  ";

/** The lines of an evidence, none for an empty one. Text from outside is not made safe here. */
export function evidenceLines(evidence: Readonly<Record<string, unknown>>): string[] {
  const lines = fieldLines(evidence, 1);
  const more = lines.length - LINES_MAX;
  if (more <= 0) return lines;
  return [...lines.slice(0, LINES_MAX), `${STEP}… ${String(more)} more lines: --json has them`];
}

function fieldLines(fields: Readonly<Record<string, unknown>>, depth: number): string[] {
  return Object.entries(fields).flatMap(([name, value]) => {
    const head = `${STEP.repeat(depth)}${name}:`;
    const words = plainWords(value, depth);
    return words === null ? [head, ...nestedLines(value, depth + 1)] : [`${head} ${words}`];
  });
}

function nestedLines(value: unknown, depth: number): string[] {
  if (Array.isArray(value)) return value.flatMap((item: unknown) => itemLines(item, depth));
  return isFields(value) ? fieldLines(value, depth) : [];
}

/** An item of a list: a dash, and behind it the item's own lines. */
function itemLines(item: unknown, depth: number): string[] {
  const dash = `${STEP.repeat(depth)}- `;
  const words = plainWords(item, depth);
  if (words !== null) return [`${dash}${words}`];
  const [first, ...rest] = nestedLines(item, depth + 1);
  return first === undefined ? [] : [`${dash}${first.trimStart()}`, ...rest];
}

/** A value that stands on one line; null: it has parts. */
function plainWords(value: unknown, depth: number): string | null {
  if (value === null || value === undefined) return "none";
  if (typeof value === "string") return value;
  if (typeof value === "object") {
    if (Object.keys(value).length === 0) return "none";
    return depth < DEPTH_MAX ? null : JSON.stringify(value);
  }
  return JSON.stringify(value);
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
