import type { Route } from "./call.ts";
import { ACCOUNT_ROUTES } from "./resources/account.ts";
import { TRANSFER_ROUTES } from "./resources/bank-transfers.ts";
import { CHARGE_ROUTES } from "./resources/charges.ts";
import { DISPUTE_ROUTES } from "./resources/disputes.ts";
import { EVENT_ROUTES } from "./resources/events.ts";
import { INTENT_ROUTES } from "./resources/intents.ts";
import { INVOICE_ROUTES } from "./resources/invoice-payments.ts";
import { LEDGER_ROUTES } from "./resources/ledger.ts";
import { METHOD_ROUTES } from "./resources/methods.ts";
import { PLAIN_ROUTES } from "./resources/plain.ts";
import { REFUND_ROUTES } from "./resources/refunds.ts";
import { WEBHOOK_ENDPOINT_ROUTES } from "./resources/webhook-endpoints.ts";

/** Every endpoint of the API that the sandbox has. */
export const API_ROUTES: readonly Route[] = [
  ...INTENT_ROUTES,
  ...CHARGE_ROUTES,
  ...REFUND_ROUTES,
  ...DISPUTE_ROUTES,
  ...LEDGER_ROUTES,
  ...EVENT_ROUTES,
  ...METHOD_ROUTES,
  ...PLAIN_ROUTES,
  ...TRANSFER_ROUTES,
  ...INVOICE_ROUTES,
  ...ACCOUNT_ROUTES,
  ...WEBHOOK_ENDPOINT_ROUTES,
];
