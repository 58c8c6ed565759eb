// Goal: amounts are shown and read exactly, by the exponents of Stripe's API.
import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { currencyExponent, formatAmount, parseAmount } from "../../src/core/money.ts";

describe("formatAmount", () => {
  test.each([
    [1250n, "usd", "12.50 USD"],
    [5n, "USD", "0.05 USD"],
    [-5n, "eur", "-0.05 EUR"],
    [0n, "gbp", "0.00 GBP"],
    [1250n, "jpy", "1250 JPY"],
    [1250n, "krw", "1250 KRW"],
    [12_340n, "bhd", "12.340 BHD"],
    // Zero-decimal in the world, two-decimal in the API.
    [500n, "isk", "5.00 ISK"],
    [500n, "ugx", "5.00 UGX"],
    [10n ** 77n, "usd", `1${"0".repeat(75)}.00 USD`],
  ])("default: %s %s", (minor, currency, text) => {
    expect(formatAmount(minor, currency)).toBe(text);
  });

  test("behavior: an unknown currency is shown in minor units, not guessed", () => {
    expect(formatAmount(10_000n, "USDC")).toBe("10000 minor units of USDC");
  });
});

describe("parseAmount", () => {
  test.each([
    ["12.5", "usd", 1250n],
    ["12", "usd", 1200n],
    ["-0.05", "usd", -5n],
    ["7", "jpy", 7n],
    ["1.234", "kwd", 1234n],
  ])("default: %s %s", (text, currency, minor) => {
    expect(parseAmount(text, currency)).toBe(minor);
  });

  test.each([
    ["1.234", "usd"],
    ["1.0", "jpy"],
    ["1e3", "usd"],
    ["1,5", "usd"],
    [".5", "usd"],
    ["", "usd"],
    [" 1", "usd"],
    ["1", "doge"],
  ])("error: %s %s", (text, currency) => {
    expect(() => parseAmount(text, currency)).toThrow(RangeError);
  });

  test("behavior: what is shown reads back as the same amount", () => {
    const codes = ["usd", "jpy", "bhd", "isk", "ugx", "eur", "krw"];
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(10n ** 78n), max: 10n ** 78n }),
        fc.constantFrom(...codes),
        (minor, code) => {
          const [shown, unit] = formatAmount(minor, code).split(" ");
          expect(unit).toBe(code.toUpperCase());
          expect((shown?.split(".")[1] ?? "").length).toBe(currencyExponent(code));
          expect(parseAmount(shown ?? "", code)).toBe(minor);
        },
      ),
    );
  });
});
