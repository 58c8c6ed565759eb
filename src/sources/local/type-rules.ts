import { FIELDS } from "./fields.ts";
import type { IntentField } from "./fields.ts";
import type { ExpressionType } from "./relation.ts";
import type { FieldSql } from "./shape.ts";
import { instantSql } from "./time-sql.ts";

/** A verdict about the type of a field's expression. */
export type TypeVerdict =
  | { readonly ok: true; readonly sql: string; readonly zoneless: boolean }
  | { readonly ok: false; readonly seen: string; readonly advice: string };

const TIMESTAMPTZ = "timestamp with time zone";
const TIMESTAMP = "timestamp without time zone";

const AMOUNT_MAX: Readonly<Record<string, bigint>> = {
  smallint: 32_767n,
  integer: 2_147_483_647n,
  bigint: 9_223_372_036_854_775_807n,
};

/** Can the field be read from a value of this type, and with which SQL? */
export function judgeType(
  field: IntentField,
  input: {
    readonly expression: string;
    readonly type: ExpressionType;
    /** As {@link zoneSql} made it; `null`: not set. */
    readonly zone: string | null;
  },
): TypeVerdict {
  switch (FIELDS[field].kind) {
    case "amount":
      return judgeAmount(input.expression, input.type);
    case "time":
      return judgeTime(input);
    case "text":
    case "response":
    case "yes/no":
      return { ok: true, sql: input.expression, zoneless: false };
  }
}

/** The largest amount that a column of this type holds; `null`: any that is kept. */
export function amountMaxOf(field: FieldSql): bigint | null {
  return AMOUNT_MAX[field.type] ?? null;
}

function judgeAmount(expression: string, { type, scale }: ExpressionType): TypeVerdict {
  const whole = ["smallint", "integer", "bigint", "numeric", "text", "character varying"];
  if (whole.includes(type) && (scale ?? 0) <= 0)
    return { ok: true, sql: expression, zoneless: false };
  const shown = scale === null ? type : `${type} with ${String(scale)} digits after the point`;
  const factor = scale === null ? "100" : `1${"0".repeat(scale)}`;
  return {
    ok: false,
    seen: shown,
    advice:
      "amounts are whole minor units (cents); if it holds major units, write an expression such as " +
      `"(${expression} * ${factor})::bigint", and mind currencies without minor units: ` +
      "1000 JPY are 1000, not 100000",
  };
}

function judgeTime(input: {
  readonly expression: string;
  readonly type: ExpressionType;
  readonly zone: string | null;
}): TypeVerdict {
  const { expression, type, zone } = input;
  if (type.type === TIMESTAMPTZ) return { ok: true, sql: expression, zoneless: false };
  if (type.type === TIMESTAMP && zone !== null) {
    return { ok: true, sql: instantSql(`(${expression}\n)`, zone), zoneless: true };
  }
  if (type.type === TIMESTAMP) {
    return {
      ok: false,
      seen: "timestamp without time zone, and intents.timeZone is not set",
      advice:
        "set intents.timeZone (INTENTS_TIME_ZONE) to the zone in which the writer's clock runs, " +
        "for example Europe/Berlin or UTC",
    };
  }
  const number = ["bigint", "integer", "numeric"].includes(type.type);
  return {
    ok: false,
    seen: type.type,
    advice:
      "a timestamptz is needed; write an expression such as " +
      (number ? `"to_timestamp(${expression})"` : `"(${expression})::timestamptz"`),
  };
}
