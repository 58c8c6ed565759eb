/** What a scenario of the demo is, and what it expects tallyd to find. */
import type { StripeSandbox } from "../sandbox/stripe/server.ts";
import type { AgentDeps, Purchase } from "./agent.ts";

/** One incident that must be found; nothing else may be. */
export interface Expected {
  readonly code: string;
  /** Rows that it must name; empty for charges without a row. */
  readonly intents: readonly string[];
  /** Given where no row can name it. */
  readonly charges?: readonly string[];
  /** Default `open`: still so when the demo ends. */
  readonly end?: "open" | "closed";
}

/** A row that the resolver must settle, and how. */
export interface ExpectedResolution {
  readonly intentId: string;
  readonly state: "recorded" | "failed_retryable" | "failed_terminal";
}

/** What one run of a scenario leaves to be found. */
export interface Injected {
  readonly expected: readonly Expected[];
  readonly resolutions?: readonly ExpectedResolution[];
  /** Called once every `expected` was found; what a person does next. */
  readonly afterwards?: () => Promise<readonly Expected[]>;
}

export interface SceneDeps extends AgentDeps {
  readonly sandbox: StripeSandbox;
  /** The same agent behind a line that loses every answer. */
  readonly lossy: AgentDeps;
  /** A new purchase of a random customer; names never repeat. */
  readonly purchase: (name: string) => Purchase;
  /** Waits until the daemon has mirrored the row. */
  readonly mirrored: (intentId: string) => Promise<void>;
}

export interface Scenario {
  /** What went wrong, as a row of the closing table. */
  readonly title: string;
  readonly times: number;
  readonly run: (deps: SceneDeps) => Promise<Injected>;
}

/** Nothing may be found. */
export const NOTHING: Injected = { expected: [] };
