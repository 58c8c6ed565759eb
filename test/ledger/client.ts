import Stripe from "stripe";

const KEY = "sk_test_0123456789abcdef";

/** The official client for the stand-in. */
export function clientOf(url: string, maxNetworkRetries = 2): Stripe {
  const { hostname, port } = new URL(url);
  const where = { host: hostname, port: Number(port), protocol: "http" } as const;
  const client = new Stripe(KEY, { ...where, maxNetworkRetries, telemetry: false });
  // Its second attempt at a closed connection is part of the tests, its half second is not.
  client.getInitialNetworkRetryDelay = () => 0.001;
  return client;
}
