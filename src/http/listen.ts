import { createServer } from "node:http";
import type { RequestListener, Server } from "node:http";
import type { AddressInfo } from "node:net";

import { ConfigError } from "../core/errors.ts";

/** A server that listens. */
export interface Listening {
  /** The port it really has; differs from the wished one when that was 0. */
  readonly port: number;
  /** Accepts no more, lets requests in flight end for `graceMs`, then cuts them. */
  readonly close: (graceMs: number) => Promise<void>;
}

/** Where to listen, and which settings say so. */
export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  /** Names of the two settings, for the error text. */
  readonly settings: { readonly host: string; readonly port: string };
}

// Slower than any honest client: a webhook of 5 MB over a bad line takes a few seconds.
const REQUEST_MAX_MS = 30_000;
const HEADERS_MAX_MS = 10_000;

/** Starts an HTTP server. Throws ConfigError when the address cannot be had. */
export async function listen(handler: RequestListener, options: ListenOptions): Promise<Listening> {
  const server = createServer(
    { requestTimeout: REQUEST_MAX_MS, headersTimeout: HEADERS_MAX_MS },
    handler,
  );
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      reject(addressError(error, options));
    });
    server.listen({ host: options.host, port: options.port }, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return { port, close: (graceMs) => closeServer(server, graceMs) };
}

async function closeServer(server: Server, graceMs: number): Promise<void> {
  const timer = setTimeout(() => {
    server.closeAllConnections();
  }, graceMs);
  await new Promise<void>((resolve) => {
    server.close(() => {
      resolve();
    });
    server.closeIdleConnections();
  });
  clearTimeout(timer);
}

/** The words for an address that cannot be had: a fault of the settings. */
export function addressError(error: Error, options: ListenOptions): Error {
  const { host, port, settings } = options;
  const where = `${settings.port}: saw ${String(port)}`;
  const code = "code" in error ? error.code : undefined;
  switch (code) {
    case "EADDRINUSE":
      return new ConfigError(
        [`${where}, which another process on ${host} uses; allowed: a free port, or 0 for any`],
        { cause: error },
      );
    case "EACCES":
      return new ConfigError(
        [`${where}, which this user may not open; allowed: a port from 1024 on`],
        { cause: error },
      );
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return new ConfigError(
        [`${settings.host}: saw ${host}, which is no address of this machine`],
        { cause: error },
      );
    default:
      return error;
  }
}
