import Stripe from "stripe";
import { BugError } from "../../core/errors.ts";

type Http = NonNullable<Stripe.StripeConfig["httpClient"]>;

/** What is noted about each request that goes out, hidden retries of the SDK included. */
export interface SentRead {
  /** `null`: the platform's own account. */
  readonly account: string | null;
  /** The first part of the path after the version: `charges`, `events` … */
  readonly endpoint: string;
}

/**
 * An HTTP client for the SDK that lets only GET through. This is where invariant 1 is held: no
 * method of the SDK, used by mistake or not, can change anything at Stripe. It also notes each
 * request, since the SDK repeats one on a closed connection whatever its retry setting says.
 */
export function readOnlyHttp(notes: {
  readonly onSent: (read: SentRead) => void;
  /** The `Date` header of an answer, as text. */
  readonly onDate: (date: string) => void;
}): Http {
  const inner = Stripe.createNodeHttpClient();
  return {
    getClientName: () => inner.getClientName(),
    makeRequest: async (host, port, path, method, headers, ...rest) => {
      if (method.toUpperCase() !== "GET") {
        throw new BugError(`${method} ${path} was stopped: tallyd only reads at Stripe`);
      }
      notes.onSent({ account: accountOf(headers), endpoint: endpointOf(path) });
      const response = await inner.makeRequest(host, port, path, method, headers, ...rest);
      const date: unknown = response.getHeaders()["date"];
      if (typeof date === "string") notes.onDate(date);
      return response;
    },
  };
}

function accountOf(headers: unknown): string | null {
  if (headers === null || typeof headers !== "object") return null;
  for (const [name, value] of Object.entries(headers)) {
    if (name.toLowerCase() === "stripe-account" && typeof value === "string") return value;
  }
  return null;
}

function endpointOf(path: string): string {
  const [, , endpoint = ""] = path.split("?")[0]?.split("/") ?? [];
  return endpoint;
}
