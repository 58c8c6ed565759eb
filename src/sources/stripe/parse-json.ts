/**
 * JSON without loss of precision. `JSON.parse` rounds integers above 2^53; here they arrive as
 * strings of digits, which the reader takes for amounts (case B33). Everything else is plain JSON.
 */

// Integers of fewer digits are always held exactly by a number.
const EXACT_DIGITS = 15;
const LONG_NUMBER = new RegExp(`\\d{${String(EXACT_DIGITS + 1)}}`);
// Strings first, so that digits inside of one are never touched.
const STRING_OR_NUMBER = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const LONG_INTEGER = /^-?\d{16,}$/;

/** Parses JSON text; integers that a number cannot hold become strings. Throws `SyntaxError`. */
export function parseExactJson(text: string): unknown {
  if (!LONG_NUMBER.test(text)) return JSON.parse(text) as unknown;
  // The original is parsed too: quoting a number must not turn broken JSON into good JSON.
  JSON.parse(text);
  const quoted = text.replace(STRING_OR_NUMBER, (token) =>
    LONG_INTEGER.test(token) && !Number.isSafeInteger(Number(token)) ? `"${token}"` : token,
  );
  return JSON.parse(quoted) as unknown;
}
