/**
 * Text from outside (references, keys, reasons, metadata) on its way to people. It must not be able
 * to mention a channel, forge a link or a line of ours, turn the reading direction, or break a
 * limit of Slack.
 */

// Controls (NUL, newlines), line and paragraph separators, bidirectional marks and overrides,
// invisible joiners, and halves of surrogate pairs, which neither JSON in SQL nor Slack takes.
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Cf}]+/gu;

/** One line without control, invisible or direction-changing characters. */
export function clean(text: string): string {
  return text.replaceAll(UNPRINTABLE, " ").replaceAll(/ {2,}/g, " ").trim();
}

/** At most `max` UTF-16 units, never half a character; a cut is shown by "…". */
export function clip(text: string, max: number): string {
  if (text.length <= max) return text;
  let kept = text.slice(0, Math.max(0, max - 1));
  // A pair that was cut in two loses its first half too.
  if (/[\uD800-\uDBFF]$/.test(kept)) kept = kept.slice(0, -1);
  return max < 1 ? "" : `${kept}…`;
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

/** Slack's three control characters as entities: no mention, no link, no channel survives that. */
export function escapeSlack(text: string): string {
  return text.replaceAll(/[&<>]/g, (character) => ENTITIES[character] ?? "");
}

/**
 * Escapes and clips to at most `max` UTF-16 units after escaping; an entity is never cut. Newlines
 * of `text` are kept: whoever joins lines has cleaned each of them.
 */
export function fitSlack(text: string, max: number): string {
  const escaped = escapeSlack(text);
  if (escaped.length <= max) return escaped;
  let fitted = "";
  for (const character of text) {
    const next = fitted + escapeSlack(character);
    if (next.length > max - 1) break;
    fitted = next;
  }
  return `${fitted}…`;
}
