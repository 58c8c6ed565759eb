import type { IntentField } from "./fields.ts";

/** A column of the team's relation. */
export interface LocalColumn {
  readonly name: string;
  /** As PostgreSQL spells it: `character(3)`, `numeric(78,0)`. */
  readonly type: string;
  readonly notNull: boolean;
  readonly canUpdate: boolean;
}

/** The SQL of one field. */
export interface FieldSql {
  /** As given in the mapping, or the quoted column. */
  readonly given: string;
  /** What is read: the same, and for times always a timestamptz. */
  readonly sql: string;
  /** Type of `given`, as PostgreSQL spells it. */
  readonly type: string;
  /** `timestamp` without a zone: the bounds of an index search need the wall time. */
  readonly zoneless: boolean;
  /** The plain column that it is; `null`: an expression. */
  readonly column: string | null;
  readonly notNull: boolean;
}

/** Something about the table that a person should know, without stopping anything. */
export interface ShapeRemark {
  readonly name: string;
  readonly status: "remark" | "warning";
  readonly seen: string;
  readonly meaning: string;
  readonly advice: string;
  /** Of no interest where no chain is watched. */
  readonly onChain: boolean;
}

/** Columns that the resolver writes. */
export interface ShapeWrites {
  readonly state: string;
  readonly chargeId: string | null;
  readonly response: string | null;
  readonly fingerprint: string | null;
  readonly updatedAt: string | null;
}

/** Rights that the resolver needs and the role has not. Names are written as in SQL. */
export interface LackingRights {
  readonly relation: string;
  readonly role: string;
  readonly columns: readonly string[];
  /** What is lacking, in words. */
  readonly text: string;
  /** The statement that gives exactly that. */
  readonly grant: string;
}

/** What was found at the team's table: how to read each field and what may be written. */
export interface LocalShape {
  /** Quoted `"schema"."table"`. */
  readonly relation: string;
  /** Quoted table name: the alias under which expressions see their columns. */
  readonly alias: string;
  readonly kind: "table" | "view" | "foreign table" | "materialized view";
  readonly columns: readonly LocalColumn[];
  readonly fields: Readonly<Record<IntentField, FieldSql | null>>;
  readonly mapped: boolean;
  /** SQL type that a parameter for the intent id is cast to. */
  readonly idType: string;
  /** As a SQL literal or interval, ready for `at time zone`; `null`: not set. */
  readonly zone: string | null;
  /** Team's spelling -> canonical state. */
  readonly states: Readonly<Record<string, string>>;
  /** Canonical state -> team's spelling; absent: the state cannot be written. */
  readonly spelling: Readonly<Partial<Record<string, string>>>;
  readonly writes: ShapeWrites | null;
  /** Why nothing can be written; `null`: `writes` is given. */
  readonly writeRefusal: string | null;
  /** The rights that are lacking for it; `null`: none, or it is refused for another reason. */
  readonly lackingRights: LackingRights | null;
  /** Largest amount that the column holds; `null`: any. */
  readonly amountMax: bigint | null;
  readonly remarks: readonly ShapeRemark[];
}
