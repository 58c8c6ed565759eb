// Goal: whatever stands in foreign text, a message keeps Slack's limits and means what we wrote.
import fc from "fast-check";
import { describe, expect, test } from "vitest";

import type { Digest, DigestItem } from "../../src/alert/digest.ts";
import {
  digestDocument,
  digestItem,
  digestOf,
  mergeDigests,
  sumDigests,
} from "../../src/alert/digest.ts";
import type { Document } from "../../src/alert/document.ts";
import { toBlocks, toPlainText, toSlackText } from "../../src/alert/document.ts";
import type { Word } from "../../src/alert/message.ts";
import { incidentDocument } from "../../src/alert/message.ts";
import { clean, clip, fitSlack } from "../../src/alert/text.ts";
import type { Finding } from "../../src/core/finding.ts";
import type { Incident, Step } from "../../src/core/incident.ts";
import { diff } from "../../src/detect/diff.ts";
import { blocksFault } from "../../src/sandbox/slack/block-rules.ts";
import { ALL_JUDGED, at, makeFinding, makeNumbered } from "../incident/make.ts";

const WORDS: readonly Word[] = ["opened", "worsened", "reopened", "unmuted", "closed", "corrected"];

function stepOf(change: Partial<Finding> = {}, note: string | null = null): Step {
  const findings = [makeFinding(change)];
  const [step] = diff({ findings, incidents: [], judged: ALL_JUDGED, now: at(0) });
  if (step === undefined) throw new Error("no step");
  return { ...step, note };
}

function incidentOf(change: Partial<Finding> = {}): Incident {
  return stepOf(change).after;
}

/** Every text object of the blocks. */
function textsOf(document: Document): { type: string; text: string }[] {
  return toBlocks(document).flatMap((block) => {
    if (block.type === "actions") return block.elements.map((button) => button.text);
    return "fields" in block ? block.fields : [block.text];
  });
}

describe("an incident's message", () => {
  test("default: what happened, money, charges, since when, what to do, where to look", () => {
    const document = incidentDocument(stepOf(), "opened", { publicUrl: null });
    expect(toPlainText(document)).toMatchInlineSnapshot(`
      "Critical: double charge, 12.50 USD at risk
      order-1 was charged 2 times within 35 s
      Money at risk: 12.50 USD
      Since: 2026-03-02 09:59:00 UTC
      Gap between charges: 35 s
      Basis: reference
      Where: stripe platform/test
      Operation: ref:platform/test:order-1
      Incident: inc_6066b3bfb2ab (double_charge)
      Charges:
        ch_1
        ch_2
      Intents:
        order-1
      What to do: Refund the excess.
      Evidence:
        keeper: ch_1
      Look further:
        tallyd incidents show inc_6066b3bfb2ab
        tallyd explain ch_1"
    `);
  });

  test("behavior: blocks and text say the same", () => {
    for (const word of WORDS) {
      const document = incidentDocument(stepOf({}, "why"), word, {
        publicUrl: "https://x.example",
      });
      const shown = textsOf(document)
        .flatMap((text) => text.text.split("\n"))
        .map((line) => line.replace(/^<(.*)\|.*>$/, "$1"));
      const plain = toPlainText(document);
      for (const line of shown) expect(plain).toContain(line);
    }
  });

  test("behavior: what changed is said when it got worse", () => {
    const step = { ...stepOf(), changes: [{ what: "charge", words: "one more: ch_3" }] } as const;
    const text = toPlainText(incidentDocument(step, "worsened", { publicUrl: null }));
    expect(text).toMatch(/^Critical, worse than before: double charge/);
    expect(text).toContain("What changed:\n  one more: ch_3");
  });

  test("behavior: long lists are cut and counted", () => {
    const charges = Array.from({ length: 500 }, (_, index) => `ch_${String(index)}`);
    const text = toPlainText(incidentDocument(stepOf({ charges }), "opened", { publicUrl: null }));
    expect(text).toContain("and 490 more");
    expect(text).not.toContain("ch_10\n");
  });

  test("behavior: a link only with a public address", () => {
    const document = incidentDocument(stepOf(), "opened", { publicUrl: "https://pay.example/t" });
    const links = textsOf(document).filter((text) => text.type === "mrkdwn");
    expect(links.map((link) => link.text)).toEqual([
      "<https://pay.example/t/incidents/inc_6066b3bfb2ab|Open the incident>",
    ]);
    const bad = incidentDocument(stepOf(), "opened", { publicUrl: "javascript:alert(1)" });
    expect(textsOf(bad).filter((text) => text.type === "mrkdwn")).toEqual([]);
  });

  test("behavior: an id that a shell could misread stands in no command", () => {
    const charges = ["$(rm -rf ~)", "-rf", "ch_1; ls"];
    const step = stepOf({ charges, intents: ["a b"] });
    const text = toPlainText(incidentDocument(step, "opened", { publicUrl: null }));
    expect(text).not.toContain("tallyd explain");
  });
});

const HOSTILE = [
  "<!channel>",
  "<!everyone|x>",
  "<@U123>",
  "<https://evil.example|click here>",
  "&amp;<>&",
  "*bold* _it_ ~no~ `code` ```pre```",
  "line\nIncident: inc_000000000000\r\nforged",
  "\u202Egnp.exe\u2066\u2069\u200F",
  "\0\u0007\u001B[31m",
  "\uD800 half \uDFFF",
  "\u2028\u2029\u0085",
  "&".repeat(10_000),
  "😀".repeat(5_000),
];

const hostileText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 4_000 }),
  fc.constantFrom(...HOSTILE),
  fc.array(fc.constantFrom(...HOSTILE), { maxLength: 4 }).map((parts) => parts.join("")),
);

const hostileFinding = fc.record({
  subject: hostileText,
  operationId: hostileText,
  basis: hostileText,
  scope: hostileText,
  currency: hostileText,
  summary: hostileText,
  advice: hostileText,
  intents: fc.array(hostileText, { maxLength: 20 }),
  charges: fc.array(hostileText, { maxLength: 20 }),
  evidence: fc.dictionary(hostileText, fc.oneof(hostileText, fc.integer())),
});

function expectHarmless(document: Document): void {
  const blocks = toBlocks(document);
  // The stand-in's own reading of Slack's limits.
  expect(blocksFault(JSON.parse(JSON.stringify(blocks)))).toBeNull();
  const plain = toPlainText(document);
  for (const text of [...textsOf(document), { type: "text", text: toSlackText(plain) }]) {
    expect(text.text.length).toBeLessThanOrEqual(3_000);
    if (text.type === "mrkdwn") continue;
    expect(text.text).not.toMatch(/[<>]/);
    expect(text.text).not.toMatch(/&(?!amp;|lt;|gt;)/);
  }
  const everything = [plain, ...textsOf(document).map((text) => text.text)].join("");
  expect(everything).not.toMatch(/[\p{Cs}\p{Cf}\p{Zl}\p{Zp}]/u);
  expect(everything.replaceAll("\n", "")).not.toMatch(/\p{Cc}/u);
}

describe("hostile text", () => {
  test("behavior: an incident's message is harmless and within the limits", () => {
    fc.assert(
      fc.property(hostileFinding, fc.constantFrom(...WORDS), hostileText, (change, word, note) => {
        const step = {
          ...stepOf(change, note),
          changes: [{ what: "charge", words: note }],
        } as const;
        expectHarmless(incidentDocument(step, word, { publicUrl: "https://x.example/?a=1&b=|<" }));
      }),
      { numRuns: 150 },
    );
  });

  test("behavior: a digest is harmless and within the limits", () => {
    const findings = fc.array(hostileFinding, { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(findings, (changes) => {
        const items = changes.map((change) =>
          digestItem(incidentOf(change), { first: true, over: false }),
        );
        expectHarmless(digestDocument(digestOf("storm", items)));
      }),
      { numRuns: 40 },
    );
  });

  test("behavior: foreign text cannot forge a line of ours", () => {
    const step = stepOf({ summary: "fine\nIncident: inc_000000000000 (fake)" });
    const text = toPlainText(incidentDocument(step, "opened", { publicUrl: null }));
    expect(text.match(/^Incident: /gm)).toHaveLength(1);
  });

  test("default: clean, clip, fit", () => {
    expect(clean("a\u202Eb\n\0 c")).toBe("a b c");
    expect(clip("abcdef", 4)).toBe("abc…");
    expect(clip("a😀b", 3)).toBe("a…");
    expect(fitSlack("<!channel> & co", 100)).toBe("&lt;!channel&gt; &amp; co");
    expect(fitSlack("&&&&", 11)).toBe("&amp;&amp;…");
  });
});

describe("digests", () => {
  const items = (count: number): DigestItem[] =>
    Array.from({ length: count }, (_, index) =>
      digestItem(incidentOf(makeNumbered(index)), { first: true, over: false }),
    );

  test("default: counts, money per currency, the worst five, the other criticals by name", () => {
    const yen = digestItem(incidentOf({ amountAtRisk: 500n, currency: "jpy" }), {
      first: false,
      over: false,
    });
    const digest = digestOf("storm", [...items(8), yen]);
    expect(digest.counts).toEqual({ double_charge: 9 });
    expect(digest.sums).toEqual({ USD: "8028", JPY: "500" });
    expect(digest.worst.map((item) => item.amount)).toEqual([
      "500",
      "1007",
      "1006",
      "1005",
      "1004",
    ]);
    expect(digest.named).toHaveLength(4);
  });

  test("behavior: adding up digests equals one digest of all", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 30 }), (a, b) => {
        const all = items(a + b);
        const parts: Digest = mergeDigests(
          digestOf("storm", all.slice(0, a)),
          digestOf("storm", all.slice(a)),
        );
        const whole = digestOf("storm", all);
        expect(parts).toEqual(whole);
      }),
      { numRuns: 30 },
    );
  });

  test("behavior: criticals beyond the names are counted", () => {
    const text = toPlainText(digestDocument(digestOf("storm", items(100))));
    expect(text).toContain("and 55 more");
  });

  test("behavior: what was over before it could be told is no money at risk", () => {
    const over = items(2).map((item) => ({ ...item, over: true }));
    const digest = digestOf("backlog", [...items(3).slice(2), ...over]);
    expect(digest.counts).toEqual({ double_charge: 1, "double_charge, over": 2 });
    expect(digest).toMatchObject({ sums: { USD: "1002" }, criticals: 1, total: 3 });
  });

  test("behavior: an incident that is told twice counts once, by its last word", () => {
    const [one, two] = items(2);
    const [over, worse] = [
      { ...one!, first: false, over: true, at: at(20).toISOString() },
      { ...two!, first: false, amount: "5000", at: at(10).toISOString() },
    ];
    const sum = sumDigests("backlog", [
      digestOf("backlog", [worse]),
      digestOf("over", [over]),
      digestOf("storm", [one!, two!]),
    ]);
    expect(sum).toMatchObject({ total: 2, criticals: 1, sums: { USD: "5000" } });
    expect(sum.counts).toEqual({ double_charge: 1, "double_charge, over": 1 });
    expect(sum.worst).toEqual([{ ...worse, first: true }]);
  });

  test("behavior: ends are no money at risk, also where there are too many to be kept", () => {
    const over = items(1_001).map((item) => ({ ...item, over: true }));
    const sum = sumDigests("backlog", [digestOf("over", over), digestOf("storm", items(1))]);
    expect(sum).toMatchObject({ total: 1_002, criticals: 1, sums: { USD: "1000" } });
    expect(sum.counts).toEqual({ double_charge: 1, "double_charge, over": 1_001 });
  });
});
