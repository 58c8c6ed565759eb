/**
 * How vendors refuse lists of logs that are too large, letter by letter: from their documentation
 * and from error logs that their users published (case B38).
 */
import type { Suggestion, Vendor } from "./proxy-faults.ts";

/** Blocks, both ends included. */
export interface BlockRange {
  readonly from: number;
  readonly to: number;
}

/** A refusal. */
export interface Refusal {
  /** Of HTTP. */
  readonly status: number;
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

function hex(value: number): string {
  return value < 0 ? `-0x${(-value).toString(16)}` : `0x${value.toString(16)}`;
}

function refusal(code: number, message: string, status = 200): Refusal {
  return { status, code, message };
}

function suggested(range: BlockRange, blocks: number, how: Suggestion): BlockRange {
  switch (how) {
    case "equal":
      return range;
    case "inverted":
      return { from: range.to, to: range.from };
    case "none":
    case "smaller":
      return { from: range.from, to: Math.min(range.to, range.from + blocks - 1) };
  }
}

function hexRange(range: BlockRange): string {
  return `[${hex(range.from)}, ${hex(range.to)}]`;
}

/** More blocks than the vendor allows. */
export function rangeRefusal(
  range: BlockRange,
  limit: { readonly blocks: number; readonly vendor: Vendor; readonly suggest?: Suggestion },
): Refusal {
  const { blocks, vendor } = limit;
  const hint = limit.suggest ?? "smaller";
  const works = suggested(range, blocks, hint);
  const asked = range.to - range.from + 1;
  const grouped = blocks.toLocaleString("en-US");
  switch (vendor) {
    case "alchemy":
    case "alchemy-free": {
      const free = vendor === "alchemy-free";
      const plan = free ? "Under the Free tier plan, you" : "You";
      const sentence = `${plan} can make eth_getLogs requests with up to a ${String(blocks)} block range.`;
      const tip = ` Based on your parameters, this block range should work: ${hexRange(works)}.`;
      const end = free ? " Upgrade to PAYG for expanded block range." : "";
      const message = `${sentence}${hint === "none" ? "" : tip}${end}`;
      return free ? refusal(-32600, message, 400) : refusal(-32602, message);
    }
    case "ankr":
      return refusal(-32600, "block range is too wide");
    case "arbitrum":
      return refusal(-32000, "query timeout exceeded");
    case "base":
      return refusal(-32011, "no backend is currently healthy to serve traffic", 503);
    case "cdp":
      return refusal(-32000, `please limit the query to at most ${String(blocks)} blocks`);
    case "infura":
      return refusal(-32602, `range ${String(asked)} exceeds limit of ${String(blocks)}`);
    case "public":
      return refusal(-32000, "block range too large");
    case "publicnode":
      return refusal(-32701, `exceed maximum block range: ${String(blocks)}`);
    case "quicknode":
      return refusal(-32614, `eth_getLogs is limited to a ${grouped} range`, 413);
    case "reth":
      return refusal(-32602, `query exceeds max block range ${String(blocks)}`);
  }
}

/** More logs than the vendor answers. */
export function resultsRefusal(
  range: BlockRange,
  limit: { readonly max: number; readonly vendor: Vendor; readonly suggest?: Suggestion },
): Refusal {
  const { max, vendor } = limit;
  const half = Math.max(1, Math.floor((range.to - range.from + 1) / 2));
  const hint = limit.suggest ?? (vendor === "reth" ? "equal" : "smaller");
  const works = suggested(range, half, hint);
  switch (vendor) {
    case "alchemy":
    case "alchemy-free":
      return refusal(
        -32602,
        "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no " +
          "limit on the response size, or you can request any block range with a cap of 10K logs in the " +
          "response. Based on your parameters and the response size limit, this block range should work: " +
          hexRange(works),
      );
    case "infura":
      return {
        ...refusal(
          -32005,
          `query returned more than ${String(max)} results. Try with this block range ${hexRange(works)}.`,
        ),
        data: { from: hex(works.from), to: hex(works.to), limit: max },
      };
    case "base":
      return refusal(-32020, "backend response too large");
    case "ankr":
    case "arbitrum":
    case "cdp":
    case "public":
    case "publicnode":
    case "quicknode":
      return refusal(-32000, `logs matched by query exceeds limit of ${String(max)}`);
    case "reth": {
      const tip = `, retry with the range ${String(works.from)}-${String(works.to)}`;
      const end = hint === "none" ? "" : tip;
      return refusal(-32602, `query exceeds max results ${String(max)}${end}`);
    }
  }
}
