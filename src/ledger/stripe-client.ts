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
  on(event: "request", handler: RequestHandler): unknown;
  off(event: "request", handler: RequestHandler): unknown;
}

/** Is told of each attempt of the SDK. */
export type RequestHandler = (request: { readonly idempotency_key?: string }) => void;

interface Ears {
  readonly handlers: Set<RequestHandler>;
  readonly listener: RequestHandler;
}

// One listener for each client, however many payments it makes at once: Node takes more than ten
// for a leak, and says so on the standard error of whoever pays.
const LISTENING = new WeakMap<StripeClient, Ears>();

/** Listens to a client's attempts, until what it gives is called. */
export function onRequest(client: StripeClient, handler: RequestHandler): () => void {
  const ears = LISTENING.get(client) ?? listenTo(client);
  ears.handlers.add(handler);
  return () => {
    ears.handlers.delete(handler);
    if (ears.handlers.size > 0 || LISTENING.get(client) !== ears) return;
    LISTENING.delete(client);
    client.off("request", ears.listener);
  };
}

function listenTo(client: StripeClient): Ears {
  const handlers = new Set<RequestHandler>();
  const listener: RequestHandler = (request) => {
    for (const handler of handlers) handler(request);
  };
  client.on("request", listener);
  const ears = { handlers, listener };
  LISTENING.set(client, ears);
  return ears;
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
