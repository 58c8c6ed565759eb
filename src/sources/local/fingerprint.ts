import { createHash } from "node:crypto";

interface Spelling {
  readonly name: string;
  readonly text: (fields: FingerprintFields) => string;
}

/** What the documented fingerprint covers. */
export interface FingerprintFields {
  readonly intentId: string;
  readonly amount: bigint;
  readonly currency: string;
}

type Layout = "python" | "compact";

/** `json.dumps(…, sort_keys=True)`: Python escapes what is not ASCII, JavaScript does not. */
function asciiJson(text: string): string {
  return JSON.stringify(text).replaceAll(
    /[\u007f-\uffff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function spell(layout: Layout, amountAsText: boolean, upper: boolean): Spelling["text"] {
  const [comma, colon] = layout === "python" ? [", ", ": "] : [",", ":"];
  const quote = layout === "python" ? asciiJson : (text: string) => JSON.stringify(text);
  return ({ intentId, amount, currency }) => {
    const money = amountAsText ? `"${String(amount)}"` : String(amount);
    const code = upper ? currency.toUpperCase() : currency.toLowerCase();
    const pairs = [
      `"amount"${colon}${money}`,
      `"currency"${colon}${quote(code)}`,
      `"intent_id"${colon}${quote(intentId)}`,
    ];
    return `{${pairs.join(comma)}}`;
  };
}

// The documented function first; then what differs between languages and writers (case B11).
const SPELLINGS: readonly Spelling[] = (["python", "compact"] as const).flatMap((layout) =>
  [false, true].flatMap((amountAsText) =>
    [false, true].map((upper) => ({
      name: [layout, amountAsText ? "text amount" : "", upper ? "upper case currency" : ""]
        .filter((part) => part !== "")
        .join(", "),
      text: spell(layout, amountAsText, upper),
    })),
  ),
);

/**
 * The spelling under which the row's own fields give the stored fingerprint: then a different hash
 * elsewhere is a difference of spelling, not of meaning. `null`: none does.
 */
export function fingerprintFit(stored: string, fields: FingerprintFields): string | null {
  const wanted = stored
    .trim()
    .toLowerCase()
    .replace(/^sha256:/, "");
  const fit = SPELLINGS.find(
    (spelling) => createHash("sha256").update(spelling.text(fields)).digest("hex") === wanted,
  );
  return fit?.name ?? null;
}
