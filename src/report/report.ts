/**
 * What `tallyd report --json` prints (README.md, what `report` prints): amounts as strings of minor
 * units, times in ISO 8601. The daily digest is made from the same facts.
 */
import type { IncidentStatus } from "../core/incident.ts";
import type { Severity } from "../core/finding.ts";
import type { IntentState } from "../core/states.ts";

/** A number of things and their sum in minor units. */
export interface Sum {
  readonly count: number;
  readonly amount: string;
}

/** Money of one currency; on chain of one currency of one network. */
export interface ReportMoney {
  readonly rail: "stripe" | "evm";
  /** CAIP-2; `null` for Stripe. */
  readonly network: string | null;
  readonly currency: string;
  /** Rows made in the range that are recorded. */
  readonly recorded: Sum;
  /** Successful charges made in the range. */
  readonly charged: Sum;
  /** Those of them that no row of the team's table is matched to. */
  readonly withoutRow: Sum;
  /** Refunds made in the range, whenever their charge was. */
  readonly refunded: Sum;
  /** Disputes of the range that are lost. */
  readonly lost: Sum;
  /** Charged less refunded less lost; may be negative. */
  readonly net: string;
}

/** Decisions of one kind that ended alike. */
export interface ReportResolutions {
  readonly decision: string;
  readonly outcome: string;
  readonly count: number;
  /** Ids of their rows, the newest first. */
  readonly intents: readonly string[];
  /** Rows that `intents` leaves out. */
  readonly more: number;
}

/** Incidents of one severity; at most 100 ids. */
export interface ReportIncidents {
  readonly severity: Severity;
  readonly count: number;
  readonly ids: readonly string[];
}

/** `hour`: younger than an hour; `day`, `week`: than that; `older`: seven days or more. */
export type IncidentAge = "hour" | "day" | "week" | "older";

export interface ReportOpenIncidents extends ReportIncidents {
  readonly status: Exclude<IncidentStatus, "closed">;
  readonly age: IncidentAge;
}

/**
 * `complete`: proven over the whole range. `catching_up`: only its newest end is missing, and the
 * source is in time for that. `incomplete`: older parts are missing. `failing`: something is
 * missing, and the source cannot be read.
 */
export type CoverageState = "complete" | "catching_up" | "incomplete" | "failing";

/** How far a source is proven to be read within the range. */
export interface ReportCoverage {
  readonly source: string;
  readonly scope: string;
  /** The health of the range rests on it; other sources only speed things up. */
  readonly expected: boolean;
  readonly state: CoverageState;
  /** The end of what is proven, at most the end of the range; `null`: nothing is. */
  readonly provenTo: string | null;
  readonly missing: readonly { readonly from: string; readonly to: string }[];
  /** `null` while healthy. */
  readonly failingSince: string | null;
  readonly errorCode: string | null;
}

/** The whole report. */
export interface Report {
  /** `to` is not included. */
  readonly range: { readonly from: string; readonly to: string; readonly timeZone: string };
  /** When it was made; what is said to be so now was so then. */
  readonly at: string;
  /** No expected source is incomplete or failing. */
  readonly complete: boolean;
  /** Open and acknowledged incidents of severity warning or critical. */
  readonly open: number;
  readonly money: readonly ReportMoney[];
  readonly intents: {
    /** Rows made in the range, by the state that they have now. */
    readonly made: Readonly<Partial<Record<IntentState, number>>>;
    /** All rows that are not final, whenever they were made. */
    readonly unsettled: Readonly<Partial<Record<IntentState, number>>>;
  };
  readonly resolutions: readonly ReportResolutions[];
  readonly incidents: {
    readonly opened: readonly ReportIncidents[];
    readonly reopened: readonly ReportIncidents[];
    readonly closed: readonly ReportIncidents[];
    /** Not closed when the report was made. */
    readonly openNow: readonly ReportOpenIncidents[];
  };
  readonly coverage: readonly ReportCoverage[];
  readonly reads: {
    /** Of the days in UTC that the range touches. */
    readonly range: readonly {
      readonly scope: string;
      readonly endpoint: string;
      readonly reads: number;
    }[];
    /** Of the last 30 days, against what Stripe allows. */
    readonly month: readonly {
      readonly scope: string;
      readonly used: number;
      readonly allowed: number;
    }[];
  };
}
