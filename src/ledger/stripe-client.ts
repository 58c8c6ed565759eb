/** What the ledger uses of the official Stripe SDK, by shape: any version that has it will do. */

/** An object of Stripe's; its fields are read one by one, with care. */
export interface StripeObject {
  readonly id: string;
}

/** The official client, or as much of it as is used. */
export interface StripeClient {
  readonly paymentIntents: {
    create(params: object, options: object): Promise<StripeObject>;
    capture(id: string, params: object, options: object): Promise<StripeObject>;
    retrieve(id: string, params: object, options: object): Promise<StripeObject>;
    list(params: object, options: object): AsyncIterable<StripeObject>;
  };
  readonly refunds: {
    create(params: object, options: object): Promise<StripeObject>;
    list(params: object, options: object): AsyncIterable<StripeObject>;
  };
  on(event: "request", handler: (request: { readonly idempotency_key?: string }) => void): unknown;
  off(event: "request", handler: (request: { readonly idempotency_key?: string }) => void): unknown;
}

/** A field of an object, whatever it is. */
export function field(object: unknown, name: string): unknown {
  return typeof object === "object" && object !== null
    ? (object as Readonly<Record<string, unknown>>)[name]
    : undefined;
}

/** A text field, or null. */
export function textField(object: unknown, name: string): string | null {
  const value = field(object, name);
  return typeof value === "string" && value !== "" ? value : null;
}

/** The id of a field that holds an id or a whole object. */
export function idField(object: unknown, name: string): string | null {
  return textField(object, name) ?? textField(field(object, name), "id");
}
