import { answer, listObjects } from "../call.ts";
import type { Call, Route } from "../call.ts";
import { missing } from "../errors.ts";
import { emit } from "../events.ts";
import type { Param } from "../form.ts";
import { amount, metadata } from "../params.ts";
import type { Json, PlainRecord, Wire } from "../records.ts";
import { minor } from "../shape-parts.ts";
import { plainStore } from "../space.ts";

/** A kind of object that is only kept and shown: what it is called and what it starts with. */
interface PlainKind {
  readonly object: string;
  readonly path: string;
  readonly prefix: string;
  /** Fields that are whole numbers on the wire. */
  readonly numbers: readonly string[];
  readonly defaults: Wire;
}

const KINDS: readonly PlainKind[] = [
  {
    object: "customer",
    path: "/v1/customers",
    prefix: "cus",
    numbers: ["balance"],
    defaults: {
      address: null,
      balance: 0,
      currency: null,
      default_source: null,
      delinquent: false,
      description: null,
      email: null,
      name: null,
      phone: null,
      shipping: null,
    },
  },
  {
    object: "product",
    path: "/v1/products",
    prefix: "prod",
    numbers: [],
    defaults: { active: true, description: null, name: "" },
  },
  {
    object: "price",
    path: "/v1/prices",
    prefix: "price",
    numbers: ["unit_amount"],
    defaults: { active: true, type: "one_time" },
  },
  {
    object: "payout",
    path: "/v1/payouts",
    prefix: "po",
    numbers: ["amount"],
    defaults: { automatic: false, status: "pending", reconciliation_status: "not_applicable" },
  },
];

function fieldsOf(kind: PlainKind, call: Call): Wire {
  const fields: Record<string, Json> = {};
  for (const [name, value] of Object.entries(call.params)) {
    if (name === "expand" || name === "metadata") continue;
    fields[name] = kind.numbers.includes(name)
      ? minor(amount(call.params, name) ?? 0n)
      : jsonOf(value);
  }
  return fields;
}

function jsonOf(value: Param): Json {
  return value === "" ? null : value;
}

function find(kind: PlainKind, call: Call): PlainRecord {
  const record = plainStore(call.space, kind.object).get(call.id);
  if (record === undefined) throw missing(kind.object, call.id, "id");
  return record;
}

function write(kind: PlainKind, call: Call, before: PlainRecord | undefined): PlainRecord {
  const { world, space, cause } = call;
  const record = plainStore(space, kind.object).put(
    {
      id: before?.id ?? world.ids.next(kind.prefix),
      object: kind.object,
      created: before?.created ?? world.clock.seconds(),
      livemode: space.livemode,
      metadata: metadata(call.params, before?.metadata),
      testToken: null,
      fields: { ...kind.defaults, ...before?.fields, ...fieldsOf(kind, call) },
    },
    world.clock.now(),
  );
  if (before === undefined) emit(world, space, { type: `${kind.object}.created`, record, cause });
  else emit(world, space, { type: `${kind.object}.updated`, record, before, cause });
  return record;
}

function remove(kind: PlainKind, call: Call): Wire {
  const record = find(kind, call);
  plainStore(call.space, kind.object).delete(record.id);
  emit(call.world, call.space, { type: `${kind.object}.deleted`, record, cause: call.cause });
  return { id: record.id, object: kind.object, deleted: true };
}

function routesOf(kind: PlainKind): Route[] {
  const one = `${kind.path}/:id`;
  return [
    {
      method: "GET",
      path: kind.path,
      handle: (call: Call): Wire => {
        const store = plainStore(call.space, kind.object);
        return listObjects(call, {
          store,
          list: store.all,
          filters: ["email", "active", "product"],
        });
      },
    },
    {
      method: "POST",
      path: kind.path,
      handle: (call) => answer(call, write(kind, call, undefined)),
    },
    { method: "GET", path: one, handle: (call) => answer(call, find(kind, call)) },
    {
      method: "POST",
      path: one,
      handle: (call) => answer(call, write(kind, call, find(kind, call))),
    },
    { method: "DELETE", path: one, handle: (call) => remove(kind, call) },
  ];
}

/** Endpoints of customers, products, prices and payouts. */
export const PLAIN_ROUTES: readonly Route[] = KINDS.flatMap(routesOf);
