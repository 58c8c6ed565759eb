import type { Check, CheckStatus } from "./check.ts";

const SIGNS: Readonly<Record<CheckStatus, string>> = {
  ok: "ok     ",
  remark: "remark ",
  warning: "WARNING",
  fault: "FAULT  ",
};

/**
 * The checks for a terminal: one line each, and what it means and needs below those that matter.
 */
export function formatDoctor(checks: readonly Check[]): string {
  const lines = checks.flatMap((check) => [
    `${SIGNS[check.status]} ${check.name}: ${check.seen}`,
    ...[check.meaning, check.advice === "" ? "" : `-> ${check.advice}`]
      .filter((text) => text !== "")
      .map((text) => `        ${text}`),
  ]);
  return [...lines, "", summary(checks)].join("\n");
}

function summary(checks: readonly Check[]): string {
  const count = (status: CheckStatus): number =>
    checks.filter((check) => check.status === status).length;
  const words = `${String(count("fault"))} faults, ${String(count("warning"))} warnings, `;
  return `${words}${String(count("remark"))} remarks, ${String(count("ok"))} in order`;
}
