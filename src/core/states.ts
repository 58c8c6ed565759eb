/** The states of a row of the team's table (README.md, your table). */
export const INTENT_STATES = [
  "key_minted",
  "in_flight",
  "recorded",
  "failed_retryable",
  "failed_terminal",
  "reconciling",
] as const;

export type IntentState = (typeof INTENT_STATES)[number];

/** Is `value` one of the canonical state names? */
export function isIntentState(value: string): value is IntentState {
  return (INTENT_STATES as readonly string[]).includes(value);
}
