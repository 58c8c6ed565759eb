import { UnreadableError } from "../../core/errors.ts";

/** An object as Stripe sent it; only the id is known to be there. */
export interface StripeObject {
  readonly id: string;
  readonly [field: string]: unknown;
}

/** A page's content as Stripe sent it. */
export interface PageBody {
  readonly objects: readonly StripeObject[];
  readonly hasMore: boolean;
}

const PATH_BY_PREFIX: Readonly<Record<string, string>> = {
  pi: "payment_intents",
  ch: "charges",
  py: "charges",
  re: "refunds",
  pyr: "refunds",
  du: "disputes",
  dp: "disputes",
  evt: "events",
};

/** Is this an id that `retrieve` can read? Ids of the team's table may be of any kind. */
export function isReadableId(id: string): boolean {
  return pathOf(id) !== null;
}

/** Path of the endpoint that reads this id; `null`: no endpoint does. */
export function pathOf(id: string): string | null {
  const prefix = /^([a-z]{2,3})_[A-Za-z0-9_]+$/.exec(id)?.[1];
  return prefix === undefined ? null : (PATH_BY_PREFIX[prefix] ?? null);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function isObject(value: unknown): value is StripeObject {
  return isRecord(value) && typeof value["id"] === "string";
}

/** The body as an object with an id. Throws UnreadableError `shape`. */
export function asObject(value: unknown, what: string): StripeObject {
  if (isObject(value)) return value;
  throw new UnreadableError("shape", `${what}: an object with an id was expected`);
}

/** The body as a page of a list. Throws UnreadableError `shape`. */
export function asPage(body: unknown, what: string): PageBody {
  if (isRecord(body) && Array.isArray(body["data"]) && typeof body["has_more"] === "boolean") {
    const objects = body["data"].map((value: unknown) => asObject(value, what));
    return { objects, hasMore: body["has_more"] };
  }
  throw new UnreadableError("shape", `${what}: a list with data and has_more was expected`);
}

/** Throws UnreadableError `auth` when an object is of the mode that is not watched. */
export function refuseOtherModeObject(object: StripeObject, livemode: boolean, what: string): void {
  const mode = object["livemode"];
  if (typeof mode !== "boolean" || mode === livemode) return;
  throw new UnreadableError(
    "auth",
    `${what}: Stripe answers with livemode ${String(mode)} while livemode ${String(livemode)} is ` +
      "watched: set STRIPE_API_KEY and stripe.livemode to the same mode",
  );
}
