import type { Call, Route } from "../call.ts";
import type { Wire } from "../records.ts";

function account(call: Call): Wire {
  return {
    id: call.space.account,
    object: "account",
    business_profile: { name: "Example Shop", url: "https://shop.example.com" },
    charges_enabled: true,
    country: "US",
    default_currency: "usd",
    details_submitted: true,
    email: "owner@example.com",
    metadata: {},
    payouts_enabled: true,
    settings: { dashboard: { display_name: "Example Shop", timezone: "Etc/UTC" } },
    type: "standard",
  };
}

/** Endpoints of the account itself. */
export const ACCOUNT_ROUTES: readonly Route[] = [
  { method: "GET", path: "/v1/account", handle: account },
  {
    method: "GET",
    path: "/v1/accounts/:id",
    handle: (call) => ({ ...account(call), id: call.id }),
  },
];
