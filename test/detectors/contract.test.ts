/**
 * Every detector keeps the contract: the same columns with the same types in the same order, its
 * header
 * complete, nothing written, and the same answer whoever asks for one operation or for all.
 */
import { afterAll, beforeAll, expect, test } from "vitest";

import { detectorParameters } from "../../src/detect/parameters.ts";
import { loadDetectors, parseDetector } from "../../src/detect/load.ts";
import { DETECTOR_COLUMNS } from "../../src/detect/row.ts";
import { withTx } from "../../src/store/tx.ts";
import { openWorld } from "../support/world.ts";
import type { World } from "../support/world.ts";

let world: World;

beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.close());

const detectors = loadDetectors();

test("default: there are detectors", () => {
  expect(detectors.length).toBeGreaterThan(10);
});

test.each(detectors.map((detector) => [detector.name, detector] as const))(
  "behavior: %s answers the contract's columns",
  async (_name, detector) => {
    const context = { settings: world.settings, localAmountMax: null };
    const parameters = detectorParameters(context, { operations: [], asOf: world.now });
    const values = detector.sql.names.map((name) => parameters[name]);
    const result = await withTx(
      world.pool,
      async (tx) => {
        const answer = await tx.query(detector.sql.text, values);
        const types = await tx.query<{ name: string }>(
          "select format_type(oid, null) as name from unnest($1::oid[]) with ordinality as t (oid, n) order by n",
          [answer.fields.map((field) => field.dataTypeID)],
        );
        return answer.fields.map((field, n) => [field.name, types.rows[n]?.name]);
      },
      { readOnly: true },
    );
    expect(result.map(([name]) => name).sort()).toEqual(Object.keys(DETECTOR_COLUMNS).sort());
    expect(Object.fromEntries(result)).toEqual(DETECTOR_COLUMNS);
  },
);

test.each(detectors.map((detector) => [detector.name, detector] as const))(
  "behavior: %s names every parameter that it uses",
  (_name, detector) => {
    const context = { settings: world.settings, localAmountMax: null };
    const known = detectorParameters(context, { operations: [], asOf: world.now });
    expect(detector.sql.names.filter((name) => !(name in known))).toEqual([]);
  },
);

test("error: an incomplete header names file and key", () => {
  expect(() => parseDetector("double_charge", "--! title: x\nselect 1")).toThrow(
    /double_charge\.sql[\s\S]*severity/,
  );
  expect(() => parseDetector("no_such_code", "--! title: x")).toThrow(/code/);
});
