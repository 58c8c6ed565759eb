/**
 * The words of any thrown value. A connection that several addresses refused is an AggregateError
 * without words of its own: its parts have them.
 */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") {
    return error.errors.map(messageOf).join("; ");
  }
  if (error instanceof Error) return error.message === "" ? error.name : error.message;
  return String(error);
}
