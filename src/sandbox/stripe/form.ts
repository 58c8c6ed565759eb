/** A decoded parameter: a leaf is always text, as on the wire of the v1 API. */
export type Param = string | readonly Param[] | Params;

/** A decoded form body or query string. */
export interface Params {
  readonly [name: string]: Param;
}

/** Most fields of one request; more is a broken caller, not a payment. */
const FIELDS_MAX = 2_000;
/** Deepest nesting of brackets; the API itself nests five deep at most. */
const DEPTH_MAX = 10;

interface Branch {
  readonly children: Map<string, Branch | string>;
}

function keyPath(name: string): string[] {
  const open = name.indexOf("[");
  if (open <= 0) return [name];
  const path = [name.slice(0, open)];
  for (const match of name.slice(open).matchAll(/\[([^\]]*)\]/g)) path.push(match[1] ?? "");
  if (path.length > DEPTH_MAX) throw new RangeError(`parameter nested too deeply: ${name}`);
  return path;
}

function place(root: Branch, path: readonly string[], value: string): void {
  let branch = root;
  path.forEach((segment, depth) => {
    // An empty bracket appends: `expand[]=a&expand[]=b`.
    const key = segment === "" ? String(branch.children.size) : segment;
    if (depth === path.length - 1) {
      branch.children.set(key, value);
      return;
    }
    const next = branch.children.get(key);
    if (next === undefined || typeof next === "string") {
      const made: Branch = { children: new Map() };
      branch.children.set(key, made);
      branch = made;
    } else {
      branch = next;
    }
  });
}

function freeze(branch: Branch): Param {
  const keys = [...branch.children.keys()];
  const values = [...branch.children.values()].map((child) =>
    typeof child === "string" ? child : freeze(child),
  );
  const isArray = keys.length > 0 && keys.every((key, index) => key === String(index));
  if (isArray) return values;
  return Object.fromEntries(keys.map((key, index) => [key, values[index] ?? ""]));
}

/**
 * Decodes `a=1&b[c]=2&d[]=3` into nested parameters. Indexed keys (`d[0]`) become arrays.
 * Throws RangeError past the limits on fields and depth.
 */
export function decodeForm(text: string): Params {
  const root: Branch = { children: new Map() };
  let fields = 0;
  for (const [name, value] of new URLSearchParams(text)) {
    fields += 1;
    if (fields > FIELDS_MAX) throw new RangeError("too many parameters");
    place(root, keyPath(name), value);
  }
  const keys = [...root.children.entries()];
  return Object.fromEntries(
    keys.map(([key, child]) => [key, typeof child === "string" ? child : freeze(child)]),
  );
}

/**
 * One text per meaning: equal parameters in another order give the same text.
 * Used to tell a replay from another request under the same idempotency key.
 */
export function canonicalParams(param: Param): string {
  if (typeof param === "string") return JSON.stringify(param);
  if (isList(param)) return `[${param.map(canonicalParams).join(",")}]`;
  const members = Object.keys(param)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonicalParams(param[name] ?? "")}`);
  return `{${members.join(",")}}`;
}

/** Whether a parameter is a list (`readonly` arrays are not narrowed by Array.isArray). */
export function isList(param: Param | undefined): param is readonly Param[] {
  return Array.isArray(param);
}
