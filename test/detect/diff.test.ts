// Goal: an incident's life follows the facts and people's words, and nothing else.
// Method: runs are played one after another against the pure diff; what it gives is the next state.
import { describe, expect, test } from "vitest";

import type { Finding } from "../../src/core/finding.ts";
import type { Correction, Incident, Step } from "../../src/core/incident.ts";
import { incidentId, verdictOf } from "../../src/core/incident.ts";
import type { Judged } from "../../src/detect/diff.ts";
import { diff } from "../../src/detect/diff.ts";
import { foldFindings } from "../../src/detect/fold.ts";
import { ALL_JUDGED, at, makeFinding, makeNumbered } from "../incident/make.ts";

/** Incidents as they are kept between runs. */
class World {
  incidents = new Map<string, Incident>();
  seconds = 0;

  run(
    findings: readonly Finding[],
    more: {
      readonly judged?: Partial<Judged>;
      readonly failedRefunds?: readonly string[];
      readonly correction?: Correction;
    } = {},
  ): readonly Step[] {
    this.seconds += 10;
    const ids = [...this.incidents.keys()];
    const { failedRefunds, correction } = more;
    const steps = diff({
      findings,
      incidents: [...this.incidents.values()],
      judged: { ...ALL_JUDGED, ...more.judged },
      now: at(this.seconds),
      failedRefunds: new Map(failedRefunds ? ids.map((id) => [id, failedRefunds]) : []),
      corrections: new Map(correction ? ids.map((id) => [id, correction]) : []),
    });
    for (const step of steps) {
      // As the router would: what is opened is told.
      const told = step.after.told ?? step.after.severity;
      this.incidents.set(step.after.id, { ...step.after, told });
    }
    return steps;
  }

  only(): Incident {
    const [incident, ...others] = [...this.incidents.values()];
    if (incident === undefined || others.length > 0) throw new Error("not exactly one incident");
    return incident;
  }

  set(change: Partial<Incident>): void {
    const incident = { ...this.only(), ...change };
    this.incidents.set(incident.id, incident);
  }

  closeByPerson(failedRefunds: readonly string[] = []): void {
    const verdict = verdictOf(this.only(), failedRefunds);
    this.set({ status: "closed", closedBy: "person", closedAt: at(this.seconds), verdict });
  }
}

function kinds(steps: readonly Step[]): string[] {
  return steps.map((step) => step.kind);
}

function words(steps: readonly Step[]): string[] {
  return steps.flatMap((step) => step.changes.map((change) => change.words));
}

const ORPHAN = makeFinding({
  code: "orphan_charge",
  subject: "charge:platform/test:ch_1",
  operationId: "charge:platform/test:ch_1",
  intents: [],
  charges: ["ch_1"],
});
const THIRD = makeFinding({ charges: ["ch_1", "ch_2", "ch_3"], amountAtRisk: 2500n });

describe("opening and refreshing", () => {
  test("default: opened once, then refreshed", () => {
    const world = new World();
    expect(kinds(world.run([makeFinding()]))).toEqual(["opened"]);
    expect(kinds(world.run([makeFinding()]))).toEqual(["refreshed"]);
    expect(world.only()).toMatchObject({
      id: incidentId("double_charge", "ref:platform/test:order-1"),
      status: "open",
      count: 2,
      firstSeen: at(10),
      lastSeen: at(20),
    });
  });

  test("behavior: the id is the head of the hash of code and subject", () => {
    expect(incidentId("a", "b")).toBe("inc_0eab8a0a3380");
  });

  test("behavior: one operation has one incident per code", () => {
    const world = new World();
    const other = makeFinding({ code: "amount_mismatch" });
    expect(kinds(world.run([makeFinding(), other]))).toEqual(["opened", "opened"]);
    expect(world.incidents.size).toBe(2);
  });
});

describe("worse and milder", () => {
  test.each([
    ["a new charge", { charges: ["ch_1", "ch_2", "ch_3"] }, ["one more: ch_3"]],
    ["more money", { amountAtRisk: 2000n }, ["money at risk rose from 12.50 USD to 20.00 USD"]],
  ])("behavior: %s is worse", (_name, change, said) => {
    const world = new World();
    world.run([makeFinding()]);
    const steps = world.run([makeFinding(change)]);
    expect(kinds(steps)).toEqual(["worsened"]);
    expect(words(steps)).toEqual(said);
    expect(kinds(world.run([makeFinding(change)]))).toEqual(["refreshed"]);
  });

  test("behavior: a higher severity is worse, a lower one is quiet", () => {
    const world = new World();
    world.run([makeFinding({ severity: "warning" })]);
    expect(words(world.run([makeFinding()]))).toEqual(["warning became critical"]);
    expect(kinds(world.run([makeFinding({ severity: "warning" })]))).toEqual(["eased"]);
  });

  test("behavior: another currency is not compared", () => {
    const world = new World();
    world.run([makeFinding()]);
    const steps = world.run([makeFinding({ amountAtRisk: 99_999n, currency: "jpy" })]);
    expect(kinds(steps)).toEqual(["refreshed"]);
  });

  test("behavior: one more row is worse only where rows are the trouble", () => {
    const more = { intents: ["order-1", "order-2"] };
    const world = new World();
    world.run([makeFinding()]);
    expect(kinds(world.run([makeFinding(more)]))).toEqual(["refreshed"]);
    const rows = new World();
    rows.run([makeFinding({ code: "duplicate_charge_id" })]);
    expect(kinds(rows.run([makeFinding({ code: "duplicate_charge_id", ...more })]))).toEqual([
      "worsened",
    ]);
  });

  test("behavior: a spend cap alerts again when its sum doubles, not per payment", () => {
    const cap = { code: "spend_cap_exceeded", operationId: null } as const;
    const world = new World();
    world.run([makeFinding({ ...cap, amountAtRisk: 1024n })]);
    const next = makeFinding({ ...cap, amountAtRisk: 2000n, charges: ["ch_8", "ch_9"] });
    expect(kinds(world.run([next]))).toEqual(["refreshed"]);
    expect(kinds(world.run([makeFinding({ ...cap, amountAtRisk: 2048n })]))).toEqual(["worsened"]);
  });

  test("behavior: an acknowledged incident that gets worse is open again", () => {
    const world = new World();
    world.run([makeFinding()]);
    world.set({ status: "acknowledged" });
    expect(kinds(world.run([makeFinding()]))).toEqual(["refreshed"]);
    expect(world.only().status).toBe("acknowledged");
    world.run([THIRD]);
    expect(world.only().status).toBe("open");
  });
});

describe("closing by facts", () => {
  test("default: gone from a judged operation", () => {
    const world = new World();
    world.run([makeFinding()]);
    const judged = { operations: new Set(["ref:platform/test:order-1"]) };
    expect(kinds(world.run([], { judged }))).toEqual(["closed"]);
    expect(world.only()).toMatchObject({ status: "closed", closedBy: "facts", closedAt: at(20) });
    expect(world.run([])).toEqual([]);
  });

  test.each<[string, Partial<Judged>]>([
    ["its operation was not judged", { operations: new Set(["another"]) }],
    ["its detector did not run", { codes: new Set(["orphan_charge"] as const) }],
    ["its scope is blind", { blindScopes: new Set(["platform/test"]) }],
  ])("behavior: nothing closes when %s", (_name, judged) => {
    const world = new World();
    world.run([makeFinding()]);
    expect(world.run([], { judged })).toEqual([]);
    expect(world.only().status).toBe("open");
  });

  test("behavior: trouble over two rails needs every scope to see", () => {
    const world = new World();
    world.run([makeFinding({ scope: null })]);
    expect(world.run([], { judged: { blindScopes: new Set(["eip155:8453"]) } })).toEqual([]);
    expect(kinds(world.run([]))).toEqual(["closed"]);
  });

  test("behavior: an incident about a source closes by its subject", () => {
    const gap = makeFinding({ code: "coverage_gap", subject: "stripe.events", operationId: null });
    const world = new World();
    world.run([gap]);
    expect(world.run([], { judged: { subjects: new Set() } })).toEqual([]);
    // The blind scope is what it is about, so that cannot hold it open.
    const judged = {
      subjects: new Set(["stripe.events"]),
      blindScopes: new Set(["platform/test"]),
    };
    expect(kinds(world.run([], { judged }))).toEqual(["closed"]);
  });

  test("behavior: what facts closed comes back", () => {
    const world = new World();
    world.run([makeFinding()]);
    world.run([]);
    expect(kinds(world.run([makeFinding()]))).toEqual(["reopened"]);
    expect(world.only()).toMatchObject({ status: "open", closedBy: null, firstSeen: at(10) });
  });

  test("behavior: a failed refund is named when it reopens (B29)", () => {
    const world = new World();
    world.run([makeFinding()]);
    world.run([]);
    const steps = world.run([makeFinding()], { failedRefunds: ["re_1"] });
    expect(kinds(steps)).toEqual(["reopened"]);
    expect(words(steps)).toEqual(["refund failed: re_1"]);
  });
});

describe("a person's word", () => {
  test("behavior: the same facts stay closed, also after they were gone", () => {
    const world = new World();
    world.run([makeFinding()]);
    world.closeByPerson();
    expect(kinds(world.run([makeFinding()]))).toEqual(["refreshed"]);
    expect(world.run([])).toEqual([]);
    expect(kinds(world.run([makeFinding()]))).toEqual(["refreshed"]);
    expect(world.only()).toMatchObject({ status: "closed", closedBy: "person" });
  });

  test("behavior: a third charge reopens", () => {
    const world = new World();
    world.run([makeFinding()]);
    world.closeByPerson();
    const steps = world.run([THIRD]);
    expect(kinds(steps)).toEqual(["reopened"]);
    expect(words(steps)).toContain("one more: ch_3");
    expect(world.only()).toMatchObject({ status: "open", verdict: null });
  });

  test("behavior: a refund that failed since the verdict reopens, an older one does not", () => {
    const world = new World();
    world.run([makeFinding()]);
    world.closeByPerson(["re_1"]);
    const old = world.run([makeFinding()], { failedRefunds: ["re_1"] });
    expect(kinds(old)).toEqual(["refreshed"]);
    const steps = world.run([makeFinding()], { failedRefunds: ["re_1", "re_2"] });
    expect(kinds(steps)).toEqual(["reopened"]);
    expect(words(steps)).toEqual(["refund failed: re_2"]);
  });

  test("behavior: the word follows the group when its operation gets another id", () => {
    const world = new World();
    world.run([makeFinding()]);
    world.closeByPerson();
    const moved = { subject: "intent:order-1", operationId: "intent:order-1" };
    const steps = world.run([makeFinding(moved)]);
    expect(kinds(steps)).toEqual(["continued"]);
    expect(steps[0]?.after).toMatchObject({ status: "closed", closedBy: "person", ...moved });
    expect(kinds(world.run([makeFinding(moved)]))).toEqual(["refreshed"]);
    expect(kinds(world.run([makeFinding({ ...moved, charges: THIRD.charges })]))).toEqual([
      "reopened",
    ]);
  });
});

describe("muting", () => {
  function muted(until: Date | null): World {
    const world = new World();
    world.run([makeFinding()]);
    const verdict = verdictOf(world.only(), []);
    world.set({ status: "muted", mutedUntil: until, verdict });
    return world;
  }

  test("default: quiet until the time, then open", () => {
    const world = muted(at(25));
    expect(kinds(world.run([makeFinding()]))).toEqual(["refreshed"]);
    expect(world.only().status).toBe("muted");
    expect(kinds(world.run([makeFinding()]))).toEqual(["unmuted"]);
    expect(world.only()).toMatchObject({ status: "open", mutedUntil: null });
  });

  test("behavior: worse facts end it early", () => {
    const world = muted(at(3_600));
    expect(kinds(world.run([THIRD]))).toEqual(["worsened"]);
    expect(world.only()).toMatchObject({ status: "open", mutedUntil: null });
  });

  test("behavior: without a time it lasts until the facts get worse", () => {
    const world = muted(null);
    world.seconds = 10_000_000;
    expect(kinds(world.run([makeFinding()]))).toEqual(["refreshed"]);
    expect(kinds(world.run([THIRD]))).toEqual(["worsened"]);
  });

  test("behavior: it outlives a closing by facts", () => {
    const world = muted(at(3_600));
    world.run([]);
    world.run([makeFinding()]);
    expect(world.only()).toMatchObject({ status: "muted", mutedUntil: at(3_600) });
  });
});

describe("corrections", () => {
  const recorded: Correction = { kind: "recorded", charge: "ch_1", intent: "order-1" };

  test("default: an orphan that was told turns out to be recorded", () => {
    const world = new World();
    world.run([ORPHAN]);
    const steps = world.run([], { correction: recorded });
    expect(kinds(steps)).toEqual(["corrected"]);
    expect(steps[0]?.note).toBe("ch_1 turned out to be recorded as intent order-1");
    expect(world.run([], { correction: recorded })).toEqual([]);
  });

  test("behavior: what was never told closes without a word", () => {
    const world = new World();
    world.run([ORPHAN]);
    world.set({ told: null });
    const steps = world.run([], { correction: recorded });
    expect(kinds(steps)).toEqual(["closed"]);
    expect(steps[0]?.note).toContain("order-1");
  });

  test("behavior: an orphan that is half of a double charge is told there", () => {
    const world = new World();
    world.run([ORPHAN]);
    const steps = world.run([makeFinding()], { correction: recorded });
    expect(kinds(steps)).toEqual(["opened", "absorbed"]);
  });

  test("behavior: another id of the operation moves the incident without a new alert", () => {
    const world = new World();
    world.run([makeFinding()]);
    const moved = { subject: "intent:order-1", operationId: "intent:order-1" };
    const steps = world.run([makeFinding(moved)]);
    expect(kinds(steps)).toEqual(["continued", "absorbed"]);
    expect(steps[0]?.after).toMatchObject({ told: "critical", firstSeen: at(10), count: 2 });
    expect(steps[1]?.after).toMatchObject({ status: "closed", told: null });
  });
});

describe("folding", () => {
  test("default: one finding per code and subject, the worst leads", () => {
    const [folded, ...others] = foldFindings([
      makeFinding({ severity: "warning", basis: "similar", charges: ["ch_2", "ch_3"] }),
      makeFinding({ intents: ["order-2"] }),
    ]);
    expect(others).toEqual([]);
    expect(folded).toMatchObject({
      severity: "critical",
      basis: "reference",
      charges: ["ch_2", "ch_3", "ch_1"],
      intents: ["order-1", "order-2"],
      // The same charge is in both: the money is not added up.
      amountAtRisk: 1250n,
    });
  });

  test("behavior: money of different charges is added, of two currencies is not", () => {
    const other = makeFinding({ charges: ["ch_8", "ch_9"], amountAtRisk: 50n });
    expect(foldFindings([makeFinding(), other])[0]?.amountAtRisk).toBe(1300n);
    const yen = { ...other, currency: "jpy" };
    expect(foldFindings([makeFinding(), yen])[0]).toMatchObject({
      amountAtRisk: 1250n,
      currency: "usd",
    });
  });

  test("behavior: the order does not depend on the detectors' order", () => {
    const findings = [3, 1, 2].map((index) => makeNumbered(index));
    const subjects = (list: readonly Finding[]): string[] =>
      foldFindings(list).map((finding) => finding.subject);
    expect(subjects(findings)).toEqual(["op-1", "op-2", "op-3"]);
    expect(subjects(findings.toReversed())).toEqual(subjects(findings));
  });
});
