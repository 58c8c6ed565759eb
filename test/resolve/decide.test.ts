// Goal: the table of README.md (what it settles by itself) and its settled questions, row by row.
// Method: pure situations in, decisions out; every row names what it expects, and why in its title.
import { describe, expect, test } from "vitest";

import { decide } from "../../src/resolve/decide.ts";
import type { Decision } from "../../src/resolve/decision.ts";
import type { Situation } from "../../src/resolve/situation.ts";
import {
  HOUR,
  MINUTE,
  NOW,
  RULES,
  absence,
  ago,
  charge,
  intent,
  payment,
  sibling,
  situation,
} from "./situations.ts";

/** A decision in one line: its kind and what tells it apart. */
function line(decision: Decision): string {
  switch (decision.kind) {
    case "record":
      return `record ${decision.charge.chargeId}`;
    case "fail_terminal":
      return `fail_terminal ${decision.why}`;
    case "fail_retryable":
      return "fail_retryable";
    case "wait":
      return `wait ${decision.on}`;
    case "hold":
      return `hold ${decision.code}${decision.basis === null ? "" : ` ${decision.basis}`}`;
    case "unproven":
      return `unproven ${decision.missing.map((missing) => missing.what).join(",")}`;
  }
}

function decided(fields: Partial<Situation>): Decision {
  return decide(situation(fields), RULES, NOW);
}

const paid = { payments: [payment()], charges: [charge()] };
const inFlight = intent({ state: "in_flight", createdAt: ago(HOUR), updatedAt: ago(HOUR) });
const failed = charge({ chargeId: "ch_0", status: "failed" });

describe("one success of its own", () => {
  test.each<[string, Partial<Situation>, string]>([
    ["reconciling", paid, "record ch_1"],
    ["in flight", { ...paid, intent: inFlight }, "record ch_1"],
    [
      "failed_retryable: a retry would pay twice",
      { ...paid, intent: intent({ state: "failed_retryable" }) },
      "record ch_1",
    ],
    ["key_minted: the same", { ...paid, intent: intent({ state: "key_minted" }) }, "record ch_1"],
    [
      "after failed attempts (case B07)",
      { payments: [payment()], charges: [failed, charge()] },
      "record ch_1",
    ],
    [
      "beside a canceled payment intent",
      { payments: [payment({ id: "pi_0", status: "canceled" }), payment()], charges: [charge()] },
      "record ch_1",
    ],
    [
      "although coverage is missing: a success is proof by itself",
      {
        ...paid,
        absence: absence({ gaps: [{ source: "stripe.charges", from: ago(HOUR), to: NOW }] }),
      },
      "record ch_1",
    ],
    [
      "captured in part: only a remark",
      { charges: [charge({ amount: 1000n, amountCaptured: 600n, net: 600n })] },
      "record ch_1",
    ],
    [
      "authorised for more and captured for what the row says",
      { charges: [charge({ amount: 1500n, amountCaptured: 1000n, net: 1000n })] },
      "record ch_1",
    ],
    ["given back since: it did happen", { charges: [charge({ net: 0n })] }, "record ch_1"],
    [
      "the excess of a double was given back: the kept one",
      { charges: [charge({ net: 0n }), charge({ chargeId: "ch_2" })] },
      "record ch_2",
    ],
    [
      "given back, while another row's was kept: its own",
      { charges: [charge({ net: 0n })], siblings: [sibling()] },
      "record ch_1",
    ],
    [
      "beside another row's: a person meant this one as a second purchase",
      { ...paid, siblings: [sibling()], intent: intent({ repeatConfirmed: true }) },
      "record ch_1",
    ],
    [
      "payee in another case",
      { charges: [charge({ payee: "acct_x" })], intent: intent({ payee: "ACCT_X" }) },
      "record ch_1",
    ],
  ])("behavior: %s", (_title, fields, expected) => {
    expect(line(decided(fields))).toBe(expected);
  });

  test("behavior: what is odd about a recorded success is said", () => {
    const decision = decided({
      payments: [payment(), payment({ id: "pi_2", status: "requires_capture" })],
      charges: [charge({ amountCaptured: 600n, net: 500n })],
    });
    expect(decision).toMatchObject({
      notes: [
        "captured 600 of 1000",
        "100 of it have gone back since",
        "pi_2 of the same row is still requires_capture: cancel it at Stripe",
      ],
    });
    expect(decided({ charges: [charge({ net: 0n })] }).reason).toContain("gone back");
  });
});

describe("held for a person", () => {
  const twice = [charge(), charge({ chargeId: "ch_2", paymentIntent: "pi_2" })];
  test.each<[string, Partial<Situation>, string]>([
    ["two successes", { charges: twice }, "hold double_charge intent"],
    [
      "one key outside its window, although the first charge is the row's (case B09, settled)",
      {
        intent: intent({ createdAt: ago(30 * HOUR), updatedAt: ago(30 * HOUR) }),
        charges: [
          charge({ createdAt: ago(30 * HOUR) }),
          { ...(twice[1] ?? charge()), basis: "key" },
        ],
        sharedKeys: ["k1"],
      },
      "hold double_charge key",
    ],
    [
      "its one success, while the operation has two",
      { ...paid, siblings: [sibling()], intent: intent({ operationId: "ref:A:o-1" }) },
      "hold double_charge reference",
    ],
    [
      "the same under one payment id",
      { ...paid, siblings: [sibling()], intent: intent({ operationId: "pid:A:p-1" }) },
      "hold double_charge payment_id",
    ],
    [
      "two successes under failed_retryable",
      { charges: twice, intent: intent({ state: "failed_retryable" }) },
      "hold double_charge intent",
    ],
    [
      "a confirmed repeat that was itself paid twice",
      { charges: twice, intent: intent({ repeatConfirmed: true }) },
      "hold double_charge intent",
    ],
    [
      "another amount",
      { charges: [charge({ amount: 100_000n, amountCaptured: 100_000n, net: 100_000n })] },
      "hold amount_mismatch amount",
    ],
    [
      "another currency",
      { charges: [charge({ currency: "eur" })] },
      "hold amount_mismatch currency",
    ],
    [
      "another payee",
      { charges: [charge({ payee: "acct_x" })], intent: intent({ payee: "acct_y" }) },
      "hold amount_mismatch payee",
    ],
    [
      "its key means something else elsewhere",
      {
        ...paid,
        rivals: [{ intentId: "in_2", mark: "key", amount: 1900n, currency: "usd", payee: null }],
      },
      "hold fingerprint_conflict key",
    ],
    ["marks that point to two rows", { charges: [charge({ torn: true })] }, "hold key_reuse marks"],
    ["a recorded row", { ...paid, intent: intent({ state: "recorded" }) }, "hold state_drift"],
    [
      "a row that failed for good and was paid (case B08)",
      { ...paid, intent: intent({ state: "failed_terminal" }) },
      "hold state_drift",
    ],
  ])("behavior: %s", (_title, fields, expected) => {
    expect(line(decided(fields))).toBe(expected);
  });

  test("behavior: a double names every charge, oldest first", () => {
    const decision = decided({
      charges: [charge({ createdAt: ago(HOUR) })],
      siblings: [sibling({ createdAt: ago(3 * HOUR) })],
    });
    expect(decision).toMatchObject({ charges: ["ch_9", "ch_1"] });
  });
});

describe("not final", () => {
  test.each<[string, Partial<Situation>]>([
    ...["processing", "requires_action", "requires_confirmation", "requires_capture"].map(
      (status): [string, Partial<Situation>] => [status, { payments: [payment({ status })] }],
    ),
    ["a pending charge", { charges: [charge({ status: "pending", chargeId: "py_1" })] }],
    ["a held charge without a payment intent", { charges: [charge({ captured: false })] }],
    ["made and never tried", { payments: [payment({ status: "requires_payment_method" })] }],
    ["succeeded, its charge not there yet (case B23)", { payments: [payment()] }],
    [
      "one open beside a canceled one",
      {
        payments: [payment({ status: "canceled" }), payment({ id: "pi_2", status: "processing" })],
      },
    ],
    [
      "declined a minute ago: another attempt may follow",
      {
        payments: [payment({ status: "requires_payment_method" })],
        charges: [charge({ status: "failed", createdAt: ago(MINUTE) })],
      },
    ],
  ])("behavior: %s", (_title, fields) => {
    expect(line(decided(fields))).toBe("wait provider");
    expect(line(decided({ ...fields, intent: inFlight }))).toBe("wait provider");
  });
});

describe("final failure", () => {
  const declined = {
    payments: [payment({ status: "requires_payment_method" })],
    charges: [failed],
  };
  const canceled = { payments: [payment({ status: "canceled", cancellationReason: "abandoned" })] };

  test("behavior: every attempt declined; the advice says what is still open", () => {
    const decision = decided(declined);
    expect(line(decision)).toBe("fail_terminal declined");
    expect(decision.reason).toContain("card_declined");
    expect(decision).toMatchObject({
      advice: expect.stringContaining("pi_1 is still open at Stripe") as string,
    });
  });

  test("behavior: canceled", () => {
    expect(line(decided(canceled))).toBe("fail_terminal canceled");
    expect(decided(canceled).reason).toContain("abandoned");
  });

  test("behavior: it also settles a row in flight: it is positive proof", () => {
    expect(line(decided({ ...declined, intent: inFlight }))).toBe("fail_terminal declined");
    expect(line(decided({ ...canceled, intent: inFlight }))).toBe("fail_terminal canceled");
  });

  test("behavior: a held charge whose payment intent was canceled is released", () => {
    const fields = { ...canceled, charges: [charge({ captured: false })] };
    expect(line(decided(fields))).toBe("fail_terminal canceled");
  });

  test("error: not while a second payment could exist unseen", () => {
    const gaps = [{ source: "stripe.charges", from: ago(HOUR), to: NOW }];
    for (const fields of [declined, canceled]) {
      expect(line(decided({ ...fields, absence: absence({ gaps }) }))).toBe("unproven coverage");
    }
  });

  test("error: not before the last attempt of the row can be listed", () => {
    const young = intent({ updatedAt: ago(MINUTE) });
    expect(line(decided({ ...canceled, intent: young }))).toBe("unproven time");
    expect(decided({ ...canceled, intent: young })).toMatchObject({
      until: new Date(ago(MINUTE).getTime() + 7 * MINUTE),
    });
  });

  test.each(["failed_retryable", "key_minted"] as const)("behavior: never on %s", (state) => {
    expect(line(decided({ ...declined, intent: intent({ state }) }))).toBe("wait holder");
  });
});

describe("absence", () => {
  const old = intent({ createdAt: ago(30 * HOUR), updatedAt: ago(30 * HOUR) });

  test("behavior: the key still protects a retry", () => {
    expect(line(decided({}))).toBe("fail_retryable");
  });

  test("behavior: past the replay window a new intent is needed (case B09)", () => {
    const decision = decided({ intent: old });
    expect(line(decision)).toBe("fail_terminal absent");
    expect(decision).toMatchObject({
      advice: expect.stringMatching(/new intent.*do not reuse the key/i) as string,
    });
  });

  test("behavior: without a key nothing protects a retry", () => {
    expect(line(decided({ intent: intent({ idempotencyKey: null }) }))).toBe(
      "fail_terminal absent",
    );
  });

  test.each(["in_flight", "failed_retryable", "key_minted"] as const)(
    "behavior: absence never settles %s (case B04)",
    (state) => {
      expect(line(decided({ intent: { ...old, state } }))).toBe("wait holder");
    },
  );

  test.each<[string, Partial<Situation>, string]>([
    [
      "a hole in a list",
      { absence: absence({ gaps: [{ source: "stripe.charges", from: ago(HOUR), to: NOW }] }) },
      "coverage",
    ],
    ["20 seconds old (case B25)", { intent: intent({ updatedAt: ago(20_000) }) }, "time"],
    ["a mark of its own somewhere", { absence: absence({ marked: ["pi_7"] }) }, "mark"],
    [
      "payments that no mark tells apart",
      { absence: absence({ owned: 3, withKey: 2, unmarked: ["pi_8"], unmarkedTotal: 1 }) },
      "mark",
    ],
    ["no direct look", { absence: absence({ look: null }) }, "look"],
    [
      "a stale look",
      {
        absence: absence({
          look: { kind: "lists", range: { from: ago(HOUR), to: NOW }, at: ago(HOUR) },
        }),
      },
      "look",
    ],
    [
      "the row names an id that Stripe denies (case B23)",
      {
        intent: intent({ chargeId: "pi_7" }),
        absence: absence({ look: { kind: "id", id: "pi_7", found: false, at: NOW } }),
      },
      "id",
    ],
    ["no time of change", { intent: intent({ touchKnown: false }) }, "touch"],
  ])("error: not proven: %s", (_title, fields, what) => {
    expect(line(decided(fields))).toBe(`unproven ${what}`);
  });

  test("behavior: the proof names the mark that it relied on", () => {
    const marked = absence({ owned: 4, withMetadata: 3, withKey: 1 });
    expect(decided({ absence: marked })).toMatchObject({
      absence: { objects: 4, marks: ["metadata.intent_id", "idempotency key"] },
    });
    expect(decided({})).toMatchObject({ absence: { objects: 0, marks: [] } });
  });

  test("behavior: what is missing names the payments and the mark", () => {
    const facts = absence({ owned: 1, unmarked: ["pi_8"], unmarkedTotal: 1 });
    expect(decided({ absence: facts })).toMatchObject({
      missing: [{ ids: ["pi_8"], detail: expect.stringContaining("metadata.intent_id") as string }],
    });
  });
});

describe("never a guess", () => {
  test.each<[string, Partial<Situation>, string]>([
    ["an unknown status", { payments: [payment({ status: "requires_magic" })] }, "status"],
    ["Stripe denies what it knew", { payments: [payment({ missingSince: NOW })] }, "id"],
    ["a connected account's copy", { charges: [charge({ mirrored: true })] }, "owner"],
  ])("error: %s", (_title, fields, what) => {
    expect(line(decided(fields))).toBe(`unproven ${what}`);
  });
});
