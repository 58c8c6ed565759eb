import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { createPageSink } from "../../../src/sources/stripe/page-sink.ts";
import type { Batch } from "../../../src/sources/stripe/page-sink.ts";

function page(id: number, closed: Batch["closed"] = null): Batch {
  const objects = [{ id: `ch_${String(id)}` }];
  return { objects, pages: 1, readAt: new Date(id), closed, reached: 1_000 - id };
}

/** A store that is finished by hand. */
function slowStore(): {
  readonly batches: Batch[];
  readonly store: (batch: Batch) => Promise<void>;
  readonly next: (failure?: Error) => Promise<void>;
} {
  const batches: Batch[] = [];
  const ends: ((failure?: Error) => void)[] = [];
  return {
    batches,
    store: (batch) =>
      new Promise((resolve, reject) => {
        batches.push(batch);
        ends.push((failure) => {
          if (failure === undefined) resolve();
          else reject(failure);
        });
      }),
    next: async (failure) => {
      ends.shift()?.(failure);
      await turn();
    },
  };
}

test("default: pages that come while one is stored go together, in order", async () => {
  const { batches, store, next } = slowStore();
  const sink = createPageSink(store);
  await sink.put(page(1));
  await sink.put(page(2, { from: 20, to: 30 }));
  await sink.put(page(3));
  await sink.put(page(4, { from: 10, to: 20 }));
  await next();
  const end = sink.end();
  await next();
  await end;
  expect(batches.map((batch) => batch.objects.map((object) => object.id))).toEqual([
    ["ch_1"],
    ["ch_2", "ch_3", "ch_4"],
  ]);
  expect(batches[1]).toMatchObject({
    pages: 3,
    readAt: new Date(2),
    closed: { from: 10, to: 30 },
    reached: 996,
  });
});

test("behavior: ten pages in waiting hold the reader up", async () => {
  const { batches, store, next } = slowStore();
  const sink = createPageSink(store);
  await sink.put(page(0));
  for (let index = 1; index < 10; index += 1) await sink.put(page(index));
  let taken = false;
  const tenth = sink.put(page(10)).then(() => {
    taken = true;
  });
  await turn();
  expect(taken).toBe(false);
  await next();
  await next();
  await tenth;
  expect(batches.map((batch) => batch.pages)).toEqual([1, 10]);
});

test("behavior: no page is left behind at any moment of its arrival", async () => {
  for (let delay = 0; delay < 12; delay += 1) {
    const stored: string[] = [];
    const sink = createPageSink(async (batch) => {
      await Promise.resolve();
      stored.push(...batch.objects.map((object) => object.id));
    });
    await sink.put(page(1));
    for (let step = 0; step < delay; step += 1) await Promise.resolve();
    await sink.put(page(2));
    await sink.end();
    expect(stored).toEqual(["ch_1", "ch_2"]);
  }
});

test("error: after a failure nothing more is stored, and the reader hears of it", async () => {
  const { batches, store, next } = slowStore();
  const sink = createPageSink(store);
  await sink.put(page(1));
  await sink.put(page(2));
  await next(new Error("disk full"));
  await expect(sink.put(page(3))).rejects.toThrow("disk full");
  await expect(sink.end()).rejects.toThrow("disk full");
  expect(batches).toHaveLength(1);
});
