/**
 * How two statements about one object become one: pure, and the same for any order and any
 * repetition of the statements (invariant 5). A row is the greatest statement seen, field by
 * field; nothing here depends on which came first.
 */
import { invariant } from "../core/errors.ts";

/** A value of a mirror column; null: not said, or none. */
export type Value = string | bigint | boolean | Date | null;

/**
 * Rank of a statement, most important first: a final state beats the rest, the object itself beats
 * what was derived from another, then the provider's time (ms), then the life-cycle rank.
 */
export type Order = readonly [finality: number, direct: number, atMs: number, rank: number];

/**
 * How a column is merged. `plain`: the greater statement's value, null included. `sticky`: the
 * value of the greatest statement that said one. `direct`: like sticky, but the object itself
 * beats anything derived, whatever the state.
 */
export type Rule = "key" | "plain" | "sticky" | "direct";

/** What is known about one object, or what one fact says about it. */
export interface Statement {
  readonly columns: Readonly<Record<string, Value>>;
  readonly order: Order;
  /** Orders of `sticky` and `direct` fields that an older statement said; the rest is `order`. */
  readonly fieldOrders: Readonly<Record<string, Order>>;
  /** Time of the newest statement about the object, ms; it need not be the greatest. */
  readonly newestMs: number;
}

/** Columns and their rules. */
export type Rules = Readonly<Record<string, Rule>>;

/** Negative: a before b; 0: equal; positive: a after b. */
export function compareOrder(a: Order, b: Order): number {
  for (const index of [0, 1, 2, 3] as const) {
    if (a[index] !== b[index]) return a[index] - b[index];
  }
  return 0;
}

/** Joins two statements about the same object. */
export function mergeStatements(rules: Rules, a: Statement, b: Statement): Statement {
  const greater = compareOrder(a.order, b.order);
  const order = greater >= 0 ? a.order : b.order;
  const columns: Record<string, Value> = {};
  const fieldOrders: Record<string, Order> = {};
  for (const [name, rule] of Object.entries(rules)) {
    const left = { value: valueOf(a, name), order: a.fieldOrders[name] ?? a.order };
    const right = { value: valueOf(b, name), order: b.fieldOrders[name] ?? b.order };
    if (rule === "key") columns[name] = left.value;
    else if (rule === "plain") columns[name] = pick(greater, left.value, right.value);
    else {
      const winner = joinSaid(left, right, rule);
      columns[name] = winner.value;
      if (winner.value !== null && compareOrder(winner.order, order) !== 0) {
        fieldOrders[name] = winner.order;
      }
    }
  }
  return { columns, order, fieldOrders, newestMs: Math.max(a.newestMs, b.newestMs) };
}

interface Said {
  readonly value: Value;
  readonly order: Order;
}

function joinSaid(left: Said, right: Said, rule: "sticky" | "direct"): Said {
  if (left.value === null) return right;
  if (right.value === null) return left;
  const directness = rule === "direct" ? left.order[1] - right.order[1] : 0;
  const greater = directness === 0 ? compareOrder(left.order, right.order) : directness;
  return {
    value: pick(greater, left.value, right.value),
    order: greater >= 0 ? left.order : right.order,
  };
}

/** Two statements of one moment: the greater value, so that both orders give the same. */
function pick(greater: number, left: Value, right: Value): Value {
  if (greater > 0) return left;
  if (greater < 0) return right;
  return compareValues(left, right) >= 0 ? left : right;
}

/** Order of the values of one column; null is the least. */
export function compareValues(a: Value, b: Value): number {
  if (a === null || b === null) return Number(a !== null) - Number(b !== null);
  const left = a instanceof Date ? a.getTime() : a;
  const right = b instanceof Date ? b.getTime() : b;
  invariant(typeof left === typeof right, "two types of value in one mirror column");
  if (left === right) return 0;
  return left > right ? 1 : -1;
}

/** Whether the two say the same about the object, whenever they said it. */
export function sameColumns(a: Statement, b: Statement): boolean {
  return Object.keys(a.columns).every(
    (name) => compareValues(valueOf(a, name), valueOf(b, name)) === 0,
  );
}

/** Whether nothing at all would be written. */
export function sameStatement(a: Statement, b: Statement): boolean {
  return (
    sameColumns(a, b) &&
    compareOrder(a.order, b.order) === 0 &&
    a.newestMs === b.newestMs &&
    sameFieldOrders(a.fieldOrders, b.fieldOrders)
  );
}

type FieldOrders = Statement["fieldOrders"];

function sameFieldOrders(a: FieldOrders, b: FieldOrders): boolean {
  const names = Object.keys(a);
  if (names.length !== Object.keys(b).length) return false;
  return names.every((name) => {
    const [left, right] = [a[name], b[name]];
    return left !== undefined && right !== undefined && compareOrder(left, right) === 0;
  });
}

function valueOf(statement: Statement, name: string): Value {
  const value = statement.columns[name];
  invariant(value !== undefined, `a statement without the column ${name}`);
  return value;
}
