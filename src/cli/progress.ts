import type { Clock } from "../core/clock.ts";

/** How far a long piece of work is. */
export interface ProgressState {
  /** What is being done, short. */
  readonly label: string;
  readonly done: number;
  /** Null: nobody knows how much there is. */
  readonly total: number | null;
  /** 0 to 1 when it is not `done / total`, e.g. a share of a time range. */
  readonly fraction?: number | null;
}

/** Shows progress; `finish` ends the line. */
export interface Progress {
  readonly show: (state: ProgressState) => void;
  readonly finish: () => void;
}

// A terminal is redrawn ten times a second at most: more is only flicker.
const REDRAW_MS = 100;
// Without a terminal each state is a line that stays, so it comes every few seconds only.
const LINE_MS = 3_000;
const BAR_CHARS = 24;
const TERMINAL_COLUMNS = 80;

/** A bar that redraws itself on a terminal, plain lines otherwise. */
export function createProgress(options: {
  readonly write: (text: string) => void;
  readonly terminal: boolean;
  readonly columns?: number;
  readonly clock: Clock;
}): Progress {
  const pauseMs = options.terminal ? REDRAW_MS : LINE_MS;
  const width = (options.columns ?? TERMINAL_COLUMNS) - 1;
  let shownAt = Number.NEGATIVE_INFINITY;
  let shown = "";
  let latest = "";
  const draw = (text: string): void => {
    shown = text;
    options.write(options.terminal ? `\r\u001b[K${text.slice(0, width)}` : `${text}\n`);
  };
  return {
    show: (state) => {
      latest = options.terminal ? barOf(state) : lineOf(state);
      const now = options.clock.now().getTime();
      if (now - shownAt < pauseMs) return;
      shownAt = now;
      draw(latest);
    },
    finish: () => {
      if (latest !== shown) draw(latest);
      if (options.terminal && shown !== "") options.write("\n");
    },
  };
}

function fractionOf(state: ProgressState): number | null {
  const share =
    state.fraction ?? (state.total === null ? null : state.done / Math.max(1, state.total));
  return share === null || Number.isNaN(share) ? null : Math.min(1, Math.max(0, share));
}

function lineOf(state: ProgressState): string {
  const share = fractionOf(state);
  const percent = share === null ? "" : ` ${String(Math.floor(share * 100))}%`;
  const total = state.total === null ? "" : ` of ${String(state.total)}`;
  return `${state.label}:${percent} ${String(state.done)}${total}`;
}

function barOf(state: ProgressState): string {
  const share = fractionOf(state);
  if (share === null) return lineOf(state);
  const full = Math.round(share * BAR_CHARS);
  const bar = "█".repeat(full) + "░".repeat(BAR_CHARS - full);
  const total = state.total === null ? "" : ` of ${String(state.total)}`;
  const percent = String(Math.floor(share * 100)).padStart(3);
  return `${bar} ${percent}% ${state.label} ${String(state.done)}${total}`;
}
