import type { Wire } from "./records.ts";

/** The `error` member of a Stripe error body. */
export interface ErrorBody extends Wire {
  readonly type: string;
  readonly message: string;
}

/**
 * An answer other than success. `saved` says whether endpoint execution had begun, so whether an
 * idempotency key keeps it (Stripe, "Idempotent requests": failed validation is not kept).
 */
export class ApiError extends Error {
  readonly status: number;
  readonly body: ErrorBody;
  readonly saved: boolean;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    body: ErrorBody,
    options: { saved?: boolean; headers?: Readonly<Record<string, string>> } = {},
  ) {
    super(body.message);
    this.name = "ApiError";
    this.status = status;
    this.body = body;
    this.saved = options.saved ?? false;
    this.headers = options.headers ?? {};
  }
}

/** 400 for a parameter that fails validation; nothing ran and nothing is saved. */
export function invalidParam(message: string, param?: string, code?: string): ApiError {
  return new ApiError(400, {
    type: "invalid_request_error",
    message,
    ...(param === undefined ? {} : { param }),
    ...(code === undefined ? {} : { code }),
  });
}

/** 400 for an object in the wrong state; it comes from the running endpoint and is saved. */
export function wrongState(message: string, code: string, detail: Wire = {}): ApiError {
  const body: ErrorBody = { type: "invalid_request_error", message, code, ...detail };
  return new ApiError(400, body, { saved: true });
}

/** 404 `resource_missing`, or 400 when the id came in a parameter of a list. */
export function missing(kind: string, id: string, param = "id", status = 404): ApiError {
  return new ApiError(status, {
    type: "invalid_request_error",
    code: "resource_missing",
    message: `No such ${kind}: '${id}'`,
    param,
  });
}

/** 401 for a missing, malformed or revoked key; it precedes the idempotency layer. */
export function unauthenticated(message: string): ApiError {
  return new ApiError(401, { type: "invalid_request_error", message });
}

/** 403 for a key without the permission. */
export function forbidden(message: string, code?: string): ApiError {
  return new ApiError(403, {
    type: "invalid_request_error",
    message,
    ...(code === undefined ? {} : { code }),
  });
}

/** 400 `idempotency_error`: the key was used for other parameters or another endpoint. */
export function idempotencyMismatch(message: string): ApiError {
  return new ApiError(400, { type: "idempotency_error", message });
}

/** 500 as Stripe words it; `saved` when the endpoint had run before it broke. */
export function serverError(saved: boolean, status = 500): ApiError {
  const body: ErrorBody = {
    type: "api_error",
    message: "An unknown error occurred while the request was handled.",
  };
  return new ApiError(status, body, { saved });
}
