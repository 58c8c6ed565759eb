/**
 * Money at the edges: minor units to words and back. Inside, an amount is a bigint with its
 * currency; nothing here divides or rounds. Exponents are those of Stripe's API ("Supported
 * currencies"), which differ from ISO 4217 for ISK and UGX: zero-decimal in the world, two-decimal
 * in the API.
 */
const ZERO_DECIMAL: ReadonlySet<string> = new Set(
  "BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF".split(" "),
);
const THREE_DECIMAL: ReadonlySet<string> = new Set("BHD JOD KWD OMR TND".split(" "));
const TWO_DECIMAL: ReadonlySet<string> = new Set(
  (
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD " +
    "CAD CDF CHF CNY COP CRC CVE CZK DKK DOP DZD EGP ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD " +
    "HKD HNL HTG HUF IDR ILS INR ISK JMD KES KGS KHR KYD KZT LAK LBP LKR LRD LSL MAD MDL MKD MMK " +
    "MNT MOP MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD " +
    "RUB SAR SBD SCR SEK SGD SHP SLE SOS SRD STN SZL THB TJS TOP TRY TTD TWD TZS UAH UGX USD UYU " +
    "UZS WST XCD XCG YER ZAR ZMW"
  ).split(" "),
);

/** Digits after the point, or `null` when the currency is not one of Stripe's. Case is ignored. */
export function currencyExponent(currency: string): number | null {
  const code = currency.toUpperCase();
  if (TWO_DECIMAL.has(code)) return 2;
  if (ZERO_DECIMAL.has(code)) return 0;
  return THREE_DECIMAL.has(code) ? 3 : null;
}

/**
 * `1250n, "usd"` to `12.50 USD`. An unknown currency, such as a token whose decimals are not known
 * here, is shown as it is: `1250 minor units of XYZ`. No guess is made.
 */
export function formatAmount(minor: bigint, currency: string): string {
  const exponent = currencyExponent(currency);
  if (exponent === null) return `${String(minor)} minor units of ${currency}`;
  return `${decimal(minor, exponent)} ${currency.toUpperCase()}`;
}

/** `minor` with a point before its last `exponent` digits. */
function decimal(minor: bigint, exponent: number): string {
  if (exponent === 0) return String(minor);
  const sign = minor < 0n ? "-" : "";
  const digits = String(minor < 0n ? -minor : minor).padStart(exponent + 1, "0");
  return `${sign}${digits.slice(0, -exponent)}.${digits.slice(-exponent)}`;
}

/**
 * `"12.5", "usd"` to `1250n`. Throws a `RangeError` on an unknown currency, on anything but a plain
 * decimal number, and on more digits after the point than the currency has: rounding money is
 * guessing.
 */
export function parseAmount(text: string, currency: string): bigint {
  const exponent = currencyExponent(currency);
  if (exponent === null) {
    throw new RangeError(`currency "${currency}" is not known: give the amount in minor units`);
  }
  const match = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text);
  const fraction = match?.[3] ?? "";
  if (match?.[2] === undefined || fraction.length > exponent) {
    throw new RangeError(
      `"${text}" is no amount of ${currency.toUpperCase()}: ` +
        `digits with at most ${String(exponent)} after the point are allowed`,
    );
  }
  const minor = BigInt(match[2] + fraction.padEnd(exponent, "0"));
  return match[1] === "-" ? -minor : minor;
}
