/** Compares what the product said about a world with what the rules say, and prints both. */
import type { Finding } from "../../src/core/finding.ts";
import type { Expected, Judgement } from "./reference.ts";
import type { Outcome } from "./run-world.ts";
import type { SimPayment, SimRow, World } from "./world.ts";
import { paymentsOf, rowsOf } from "./world.ts";

/** One finding as a line; the severity apart, since the rules do not fix each of them. */
interface Line {
  readonly text: string;
  readonly charges: string | null;
  readonly severity: string | null;
}

/** Everything in which product and rules differ; empty: nothing. */
export function differences(world: World, said: Outcome, rules: Judgement): string[] {
  const mine = said.findings.filter((finding) => isOf(world, finding));
  return [
    ...compareLines(rules.findings.map(lineOf), mine.map(lineOf)),
    ...compareRows(world, rules, said),
  ];
}

function isOf(world: World, finding: Finding): boolean {
  return mentions(world, finding.intents[0] ?? finding.charges[0] ?? finding.subject);
}

/** Is one of the world's ids in the text? */
function mentions(world: World, text: string): boolean {
  return new RegExp(`[_:-]${world.prefix}s`).test(text);
}

// Codes whose money at risk the contract fixes.
const WITH_RISK = ["double_charge", "orphan_charge"];

function lineOf(
  one: Omit<Expected, "amountAtRisk"> & { readonly amountAtRisk: number | bigint | null },
): Line {
  const parts = [
    one.code,
    one.code === "double_charge" ? (one.basis ?? "-") : "",
    `rows [${[...one.intents].sort().join(" ")}]`,
    WITH_RISK.includes(one.code) ? `risk ${String(one.amountAtRisk)}` : "",
  ];
  return {
    text: parts.filter((part) => part !== "").join(" "),
    charges: one.charges === null ? null : `[${[...one.charges].sort().join(" ")}]`,
    severity: one.severity,
  };
}

function agrees(rule: Line, found: Line): boolean {
  return (
    rule.text === found.text &&
    (rule.charges === null || rule.charges === found.charges) &&
    (rule.severity === null || rule.severity === found.severity)
  );
}

function compareLines(expected: readonly Line[], found: readonly Line[]): string[] {
  const left = [...found];
  const lines: string[] = [];
  for (const one of expected) {
    const at = left.findIndex((other) => agrees(one, other));
    if (at === -1) lines.push(`  missed:   ${printed(one)}`);
    else left.splice(at, 1);
  }
  return [...lines, ...left.map((one) => `  invented: ${printed(one)}`)];
}

function printed(one: Line): string {
  return `${one.text} charges ${one.charges ?? "any"} severity ${one.severity ?? "any"}`;
}

function compareRows(world: World, rules: Judgement, said: Outcome): string[] {
  const paymentOf = new Map(
    paymentsOf(world).flatMap(({ id, charges }) => charges.map((charge) => [charge.id, id])),
  );
  // The contract says "charge id" and takes any spelling of it.
  const spelled = (id: string | null): string => (id === null ? "-" : (paymentOf.get(id) ?? id));
  return rules.rows.flatMap((row) => {
    const is = said.rows.get(row.id);
    const should = `${row.state} ${spelled(row.chargeId)} ${String(row.amount)}`;
    const found = is === undefined ? "gone" : `${is.state} ${spelled(is.chargeId)} ${is.amount}`;
    if (should === found) return [];
    const decision = said.decisions.get(row.id) ?? "none";
    const verdict = rules.verdicts.get(row.id)?.kind ?? "no candidate";
    return [`  row ${row.id}: should be ${should} (${verdict}), is ${found} (${decision})`];
  });
}

/** The world as a person reads it. */
export function table(world: World): string {
  const lines = world.stories.flatMap((story) => [
    `  ${story.name}`,
    ...story.rows.map(rowLine),
    ...story.payments.flatMap(paymentLines),
  ]);
  return [
    `world of seed ${String(world.seed)}, ${String(rowsOf(world).length)} rows`,
    ...lines,
  ].join("\n");
}

function rowLine(row: SimRow): string {
  const extra = [
    row.reference === null ? "" : `ref ${row.reference}`,
    row.paymentId === null ? "" : `payment id ${row.paymentId}`,
    row.fingerprint === null ? "" : `fp ${row.fingerprint.slice(0, 12)}`,
    row.repeatConfirmed ? "repeat confirmed" : "",
    row.amountAtFirst === null ? "" : `amount was ${String(row.amountAtFirst)}`,
    row.kind === "charge" ? "" : row.kind,
  ].filter((part) => part !== "");
  return (
    `    row ${row.id} ${row.state} ${String(row.amount)} ${row.currency} key ${row.key} ` +
    `charge ${row.chargeId ?? "-"} ${row.account} made ${ago(row.createdAge)} ` +
    `changed ${ago(row.updatedAge)} ${extra.join(", ")}`
  );
}

function paymentLines(payment: SimPayment): string[] {
  const head =
    `    ${payment.id} ${payment.status} ${String(payment.amount)} ${payment.currency} ` +
    `${payment.scope} ${payment.customer ?? "-"} key ${payment.key} made ${ago(payment.age)} ` +
    `${JSON.stringify(payment.metadata)}${payment.lossy ? " events lost" : ""}` +
    (payment.invoice === null ? "" : " invoice");
  const charges = payment.charges.flatMap((charge) => [
    `      ${charge.id} ${charge.status} captured ${String(charge.captured)} ${ago(charge.age)}`,
    ...charge.refunds.map(
      (one) => `        ${one.id} ${one.status} ${String(one.amount)} ${ago(one.age)}`,
    ),
    ...charge.disputes.map(
      (one) => `        ${one.id} ${one.status} ${String(one.amount)} ${one.reason}`,
    ),
  ]);
  return [head, ...charges];
}

const UNITS = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "m"],
] as const;

function ago(seconds: number): string {
  let left = seconds;
  let text = "";
  for (const [size, name] of UNITS) {
    if (left >= size) text += `${String(Math.floor(left / size))}${name}`;
    left %= size;
  }
  return `T-${text}${left > 0 || text === "" ? `${String(left)}s` : ""}`;
}

/** The facts about a world that two orders of delivery led to differently; empty: none. */
export function orderDifferences(
  world: World,
  first: readonly string[],
  second: readonly string[],
): string[] {
  const [one, two] = [new Set(first), new Set(second)];
  const mine = (line: string): boolean => mentions(world, line);
  return [
    ...first
      .filter((line) => !two.has(line) && mine(line))
      .map((line) => `  first order:  ${line}`),
    ...second
      .filter((line) => !one.has(line) && mine(line))
      .map((line) => `  other order:  ${line}`),
  ];
}
