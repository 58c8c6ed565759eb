/** What a duration looks like, for messages. */
export const DURATION_FORM = "a whole number with its unit: 500ms, 90s, 10m, 24h or 7d";

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

// Ten years: longer than any window of the rules, and far inside what a number holds exactly.
const DURATION_MAX_MS = 3_650 * 86_400_000;

/**
 * Milliseconds of `90s`, `10m`, `24h`, `7d` or `500ms`; `undefined` for anything else. A bare
 * number is refused: its unit would be a guess.
 */
export function parseDuration(text: unknown): number | undefined {
  if (typeof text !== "string") return undefined;
  const match = /^(\d{1,12})(ms|s|m|h|d)$/.exec(text.trim());
  const unitMs = UNIT_MS[match?.[2] ?? ""];
  if (match?.[1] === undefined || unitMs === undefined) return undefined;
  const ms = Number(match[1]) * unitMs;
  return ms <= DURATION_MAX_MS ? ms : undefined;
}

/** The shortest spelling of `ms` that {@link parseDuration} reads back: 600000 -> `10m`. */
export function formatDuration(ms: number): string {
  for (const unit of ["d", "h", "m", "s"]) {
    const unitMs = UNIT_MS[unit] ?? 1;
    // Days only from two on: the rules speak of 24h.
    const least = unit === "d" ? 2 * unitMs : unitMs;
    if (ms >= least && ms % unitMs === 0) return `${String(ms / unitMs)}${unit}`;
  }
  return `${String(ms)}ms`;
}
