/** The metrics of one replica, made anew at each scrape from the database and this process. */
import { Counter, Gauge, Registry, collectDefaultMetrics } from "prom-client";

/** One figure with its labels. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** One metric: its name without the prefix, what it is, and how to get its figures. */
export interface MetricSource {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  /** Counters only ever grow while the process lives. */
  readonly kind: "gauge" | "counter";
  readonly samples: () => Promise<readonly Sample[]>;
}

/** The text of a scrape. */
export interface Scrape {
  readonly contentType: string;
  readonly body: string;
}

const PREFIX = "tallyd_";

/**
 * Makes the metrics. A source that fails (the database is away) is left out of that scrape and
 * counted in `tallyd_metric_errors`, so that the rest is still told.
 */
export function createMetrics(sources: readonly MetricSource[]): () => Promise<Scrape> {
  return async () => {
    // A registry of its own per scrape: nothing stale can survive, and no two scrapes mix.
    const registry = new Registry();
    const errors = new Gauge({
      name: `${PREFIX}metric_errors`,
      help: "Metrics that could not be made in this scrape",
      registers: [registry],
    });
    await Promise.all(
      sources.map(async (source) => {
        try {
          fill(registry, source, await source.samples());
        } catch {
          errors.inc();
        }
      }),
    );
    return { contentType: registry.contentType, body: await registry.metrics() };
  };
}

/** The metrics of the process itself (memory, event loop), on a registry of their own. */
export function createProcessMetrics(): { readonly body: () => Promise<string> } {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return { body: () => registry.metrics() };
}

function fill(registry: Registry, source: MetricSource, samples: readonly Sample[]): void {
  const options = {
    name: PREFIX + source.name,
    help: source.help,
    labelNames: [...source.labels],
    registers: [registry],
  };
  if (source.kind === "counter") {
    const counter = new Counter(options);
    for (const { labels, value } of samples) counter.inc(labels, value);
    return;
  }
  const gauge = new Gauge(options);
  for (const { labels, value } of samples) gauge.set(labels, value);
}
