import type { Settings } from "../../core/settings.ts";
import { FIELD_NAMES, FIELDS } from "./fields.ts";
import type { LocalShape, ShapeRemark } from "./shape.ts";

/** The remarks that matter to these settings. */
export function remarksFor(
  shape: Pick<LocalShape, "remarks">,
  settings: Pick<Settings, "chains">,
): ShapeRemark[] {
  return shape.remarks.filter((remark) => !remark.onChain || settings.chains.length > 0);
}

/** Remarks about a table that works: what is weaker than it could be, and why. */
export function remarksOf(input: {
  readonly shape: Omit<LocalShape, "remarks">;
  readonly indexes: { readonly idUnique: boolean; readonly updatedAtIndexed: boolean };
}): ShapeRemark[] {
  const { shape, indexes } = input;
  return [
    ...missingRemarks(shape),
    ...amountRemarks(shape),
    ...uniqueRemarks(shape, indexes.idUnique),
    ...indexRemarks(shape, indexes.updatedAtIndexed),
    ...stateRemarks(shape),
    ...writeRemarks(shape),
  ];
}

type Shape = Omit<LocalShape, "remarks">;

function missingRemarks(shape: Shape): ShapeRemark[] {
  return FIELD_NAMES.filter(
    (field) => !FIELDS[field].mandatory && shape.fields[field] === null,
  ).map((field) => ({
    name: `field ${field}`,
    status: field === "updatedAt" ? ("warning" as const) : ("remark" as const),
    seen: "the table does not have it",
    meaning: FIELDS[field].weaker,
    onChain: FIELDS[field].onChain,
    advice: shape.mapped
      ? `add intents.columns.${field} if the table holds it under another name`
      : `add a column ${FIELDS[field].column}, or map one with intents.columns`,
  }));
}

function amountRemarks(shape: Shape): ShapeRemark[] {
  if (shape.amountMax === null || shape.amountMax > 2n ** 31n) return [];
  return [
    {
      name: "amount column",
      onChain: false,
      status: "remark",
      seen: `${shape.fields.amount?.type ?? ""}, at most ${String(shape.amountMax)}`,
      meaning: "rows above that amount cannot exist, so such a charge would have no row",
      advice: "alter the column to bigint or numeric(78,0) before amounts get that large",
    },
  ];
}

function uniqueRemarks(shape: Shape, unique: boolean): ShapeRemark[] {
  if (unique || shape.kind !== "table") return [];
  return [
    {
      name: "intent id",
      onChain: false,
      status: "warning",
      seen: "no unique index on the intent id alone",
      meaning: "two rows with one id would be taken for one; the newest of them is read",
      advice: "add a unique index on the column of the intent id",
    },
  ];
}

function indexRemarks(shape: Shape, indexed: boolean): ShapeRemark[] {
  if (indexed || shape.fields.updatedAt === null || shape.kind !== "table") return [];
  const { column } = shape.fields.updatedAt;
  return [
    {
      name: "time of change",
      onChain: false,
      status: "remark",
      seen: "no index that starts with it",
      meaning: "each look for changes reads the whole table, which costs more as it grows",
      advice:
        column === null
          ? "map updatedAt to a plain, indexed column"
          : `create index concurrently on ${shape.relation} ("${column}")`,
    },
  ];
}

function stateRemarks(shape: Shape): ShapeRemark[] {
  const targets = ["recorded", "failed_retryable", "failed_terminal"];
  const unnamed = targets.filter((state) => shape.spelling[state] === undefined);
  if (unnamed.length === 0 || shape.writes === null) return [];
  return [
    {
      name: "state names",
      onChain: false,
      status: "warning",
      seen: `intents.states has no name for ${unnamed.join(", ")}`,
      meaning: "decisions for these states are told and not written",
      advice: "add one name for each to intents.states",
    },
  ];
}

function writeRemarks(shape: Shape): ShapeRemark[] {
  if (shape.writeRefusal === null) return [];
  const { lackingRights } = shape;
  return [
    {
      name: "writing",
      onChain: false,
      status: lackingRights === null ? "remark" : "warning",
      seen: shape.writeRefusal,
      meaning: "the resolver's decisions are told and not written",
      advice:
        lackingRights === null
          ? "give intents.write, or set RESOLVE=suggest"
          : `${lackingRights.grant} (deploy/grants.sql), or set RESOLVE=suggest`,
    },
  ];
}
