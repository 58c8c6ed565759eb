import type { ChargeRecord, Json, RefundRecord, Wire } from "./records.ts";

/** What older shapes embed in an object. */
export interface Related {
  readonly charges: (intentId: string) => readonly ChargeRecord[];
  readonly refunds: (chargeId: string) => readonly RefundRecord[];
  /** Sandbox time in seconds, for what changes with time alone. */
  readonly now: number;
}

/** An amount as JSON carries it. Only here do amounts leave bigint. */
export function minor(value: bigint): number {
  return Number(value);
}

/** The `list` object around embedded or listed objects. */
export function listObject(data: readonly Json[], hasMore: boolean, url: string): Wire {
  return { object: "list", data, has_more: hasMore, url };
}
