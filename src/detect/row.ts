import { z } from "zod";

import type { Finding } from "../core/finding.ts";
import type { Detector } from "./load.ts";

/** The columns every detector answers, with their PostgreSQL types: the detector contract. */
export const DETECTOR_COLUMNS: Readonly<Record<string, string>> = {
  subject: "text",
  operation_id: "text",
  severity: "text",
  basis: "text",
  rail: "text",
  scope: "text",
  intents: "text[]",
  charges: "text[]",
  amount_at_risk: "numeric",
  currency: "text",
  occurred_at: "timestamp with time zone",
  summary: "text",
  advice: "text",
  evidence: "jsonb",
  look: "jsonb",
};

const texts = z.array(z.string().nullable()).transform((values) => values.filter(isText));

const lookShape = z
  .discriminatedUnion("source", [
    z.object({
      source: z.literal("local"),
      scope: z.string(),
      chargeIds: texts,
      keys: texts,
      intentIds: texts,
      references: texts,
      nonces: texts,
    }),
    z.object({ source: z.literal("stripe"), scope: z.string(), id: z.string() }),
    z.object({ source: z.literal("evm"), scope: z.string(), intent: z.string() }),
  ])
  .nullable();

const rowShape = z.object({
  subject: z.string().min(1),
  operation_id: z.string().nullable(),
  severity: z.enum(["info", "warning", "critical"]).nullable(),
  basis: z.string().nullable(),
  rail: z.string().nullable(),
  scope: z.string().nullable(),
  intents: texts,
  charges: texts,
  amount_at_risk: z
    .string()
    .nullable()
    .transform((text) => (text === null ? null : BigInt(text))),
  currency: z.string().nullable(),
  occurred_at: z.date().nullable(),
  summary: z.string().min(1),
  advice: z.string().nullable(),
  evidence: z.record(z.string(), z.unknown()),
  look: lookShape,
});

function isText(value: string | null): value is string {
  return value !== null;
}

/** Reads one row of a detector. Throws when the detector breaks its contract. */
export function readFinding(detector: Detector, row: unknown): Finding {
  const parsed = rowShape.safeParse(row);
  if (!parsed.success) {
    throw new Error(`sql/detectors/${detector.name}.sql: ${z.prettifyError(parsed.error)}`);
  }
  const { operation_id, amount_at_risk, occurred_at, ...rest } = parsed.data;
  return {
    ...rest,
    code: detector.code,
    severity: rest.severity ?? detector.severity,
    advice: rest.advice ?? detector.advice,
    operationId: operation_id,
    amountAtRisk: amount_at_risk,
    occurredAt: occurred_at,
  };
}
