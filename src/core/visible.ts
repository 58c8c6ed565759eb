// The same characters that never reach Slack (src/alert/text.ts). Here they are shown and not
// dropped: two references that differ in an invisible one must look different.
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Cf}]/gu;

const HEX = 16;

/**
 * One line of a terminal: text from outside can neither steer it, start a line, nor turn the
 * reading direction. `"a\u001b[31m"` becomes `"a\\u{1b}[31m"`.
 */
export function visibleLine(text: string): string {
  return text.replaceAll(
    UNPRINTABLE,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(HEX)}}`,
  );
}

/** The same for text that consists of lines: their ends are kept. */
export function visibleText(text: string): string {
  return text.split("\n").map(visibleLine).join("\n");
}
