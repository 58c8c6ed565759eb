import type { Settings } from "../../core/settings.ts";
import { FIELDS } from "./fields.ts";
import type { CatalogColumn, Relation } from "./relation.ts";
import type { LackingRights, LocalShape, ShapeWrites } from "./shape.ts";

type IntentsSettings = Settings["intents"];
type WriteField = keyof ShapeWrites;

const WRITE_FIELDS: readonly WriteField[] = [
  "state",
  "chargeId",
  "response",
  "fingerprint",
  "updatedAt",
];

/** Which columns the resolver writes, or why it writes none. */
export interface WriteVerdict {
  readonly columns: ShapeWrites | null;
  readonly refusal: string | null;
  /** The rights without which nothing is written; `null`: none is lacking. */
  readonly lacking: LackingRights | null;
  readonly faults: readonly string[];
}

/**
 * What may be written: the documented columns by name, or those that the mapping's `write` names.
 */
export function judgeWrites(input: {
  readonly relation: Relation;
  readonly kind: LocalShape["kind"];
  readonly intents: IntentsSettings;
}): WriteVerdict {
  const { relation, kind, intents } = input;
  if (kind === "materialized view") return refused(`${intents.table} is a materialized view`);
  if (intents.columns !== null && intents.write === null) {
    return refused("intents.columns is given without intents.write, so nothing is written");
  }
  const names = intents.columns === null ? columnsByName(relation) : (intents.write ?? {});
  const faults = WRITE_FIELDS.flatMap((field) => {
    const name = names[field];
    if (name === undefined || name === null || columnOf(relation, name) !== undefined) return [];
    const seen = relation.columns.map((column) => column.name).join(", ");
    return [`intents.write.${field}: saw ${JSON.stringify(name)}; allowed: a column: ${seen}`];
  });
  if (faults.length > 0) return { columns: null, refusal: null, lacking: null, faults };
  const locked = WRITE_FIELDS.flatMap((field) => {
    const column = columnOf(relation, names[field] ?? "");
    return column === undefined || column.can_update ? [] : [column.quoted];
  });
  if (locked.length > 0) {
    const lacking = lackingRights(relation, locked);
    return { ...refused(lacking.text), lacking };
  }
  const written = (field: WriteField): string | null =>
    columnOf(relation, names[field] ?? "")?.name ?? null;
  return {
    columns: {
      state: written("state") ?? "",
      chargeId: written("chargeId"),
      response: written("response"),
      fingerprint: written("fingerprint"),
      updatedAt: written("updatedAt"),
    },
    refusal: null,
    lacking: null,
    faults: [],
  };
}

function refused(refusal: string): WriteVerdict {
  return { columns: null, refusal, lacking: null, faults: [] };
}

function lackingRights({ quoted, role }: Relation, columns: readonly string[]): LackingRights {
  const list = columns.join(", ");
  return {
    relation: quoted,
    role,
    columns,
    text: `the role ${role} has no UPDATE right on ${list} of ${quoted}`,
    grant: `grant update (${list}) on ${quoted} to ${role}`,
  };
}

function columnsByName(relation: Relation): Partial<Record<WriteField, string>> {
  return Object.fromEntries(
    WRITE_FIELDS.filter((field) => columnOf(relation, FIELDS[field].column) !== undefined).map(
      (field) => [field, FIELDS[field].column],
    ),
  );
}

function columnOf(relation: Relation, name: string): CatalogColumn | undefined {
  const plain = /^"(.*)"$/s.exec(name)?.[1]?.replaceAll('""', '"') ?? name;
  return relation.columns.find((column) => column.name === plain);
}

/**
 * How the team spells each canonical state: the first name that the file gives for it, else the
 * canonical name. Where the file names states of the team's own, a state without a name has no
 * spelling: writing tallyd's word into their table could break their code.
 */
export function spellingOf(intents: IntentsSettings): Readonly<Partial<Record<string, string>>> {
  const named = Object.entries(intents.namedStates);
  if (named.length === 0) {
    return Object.fromEntries(Object.values(intents.states).map((state) => [state, state]));
  }
  const spelling: Partial<Record<string, string>> = {};
  for (const [name, state] of named) spelling[state] ??= name;
  return spelling;
}
