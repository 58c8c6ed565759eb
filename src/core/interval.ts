/** A duration in milliseconds as a PostgreSQL interval literal. */
export function interval(ms: number): string {
  return `${String(ms)} milliseconds`;
}
