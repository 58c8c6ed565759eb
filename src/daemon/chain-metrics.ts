/** Metrics of the chains: how old what is final and what is seen is, and how the endpoints do. */
import type { MetricSource, Sample } from "../http/metrics.ts";
import { getChain, listEndpointStates } from "../store/evm-chain.ts";
import type { ChainRow } from "../store/evm-chain.ts";
import type { Tallyd } from "./tallyd.ts";

const SECOND_MS = 1_000;

/** None without chains. */
export function chainMetrics(tallyd: Tallyd): MetricSource[] {
  const { pool, clock, chains } = tallyd;
  if (chains.size === 0) return [];
  const each = async (figure: (row: ChainRow) => number | null): Promise<Sample[]> => {
    const rows = await Promise.all([...chains.keys()].map((scope) => getChain(pool, scope)));
    return rows.flatMap((row) => {
      const value = figure(row);
      return value === null ? [] : [{ value, labels: { scope: row.scope } }];
    });
  };
  const age = (at: Date | undefined): number | null =>
    at === undefined ? null : (clock.now().getTime() - at.getTime()) / SECOND_MS;
  const gauge = (name: string, help: string, figure: (row: ChainRow) => number | null) => ({
    ...{ name, help, labels: ["scope"], kind: "gauge" as const },
    samples: () => each(figure),
  });
  return [
    gauge("chain_final_age_seconds", "Age of the newest block that is completely read", (row) =>
      age(row.final?.time),
    ),
    gauge("chain_head_age_seconds", "Age of the newest block that was seen", (row) =>
      age(row.head?.time),
    ),
    gauge("chain_final_block", "The newest block that is completely read", (row) =>
      row.final === null ? null : row.final.number,
    ),
    gauge("chain_stopped", "1: nothing of the chain is read until a person has looked", (row) =>
      row.stoppedAt === null ? 0 : 1,
    ),
    gauge(
      "chain_reorganisations",
      "Reorganisations above finality that were seen",
      (row) => row.reorganised,
    ),
    {
      name: "chain_endpoints",
      help: "Endpoints by state: ok, behind, failing, aside",
      labels: ["scope", "state"],
      kind: "gauge",
      samples: async () =>
        (await listEndpointStates(pool)).map(({ scope, state, endpoints }) => ({
          value: endpoints,
          labels: { scope, state },
        })),
    },
  ];
}
