/** The admin port: health, metrics, and whatever routers are mounted on it. */
import express from "express";
import type { Express, NextFunction, Request, Response, Router } from "express";

import type { Log } from "../core/log.ts";
import { bearerAllows } from "./bearer.ts";
import type { Readiness } from "./readiness.ts";

/** Further pages of the admin port. */
export type AdminRouter = Router;

/** What the admin port shows and who may see it. */
export interface AdminDeps {
  readonly readiness: () => Promise<Readiness>;
  readonly metrics: () => Promise<{ readonly contentType: string; readonly body: string }>;
  /** Null: no token is asked for; allowed on the loopback only (settings check that). */
  readonly token: string | null;
  /** Further pages, behind the same token. */
  readonly routers: readonly AdminRouter[];
  readonly log: Log;
}

const OK = 200;
const UNAUTHORIZED = 401;
const NOT_FOUND = 404;
const FAULT = 500;
const UNAVAILABLE = 503;

/**
 * Makes the admin application. `/healthz` is free: it says that the process answers and nothing
 * else. `/readyz` has every check with its reason; `?only=database,jobs` asks for some of them.
 */
export function createAdminApp(deps: AdminDeps): Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.use((_request, response, next) => {
    response.set("cache-control", "no-store");
    response.set("x-content-type-options", "nosniff");
    next();
  });
  app.get("/healthz", (_request, response) => {
    response.json({ status: "alive" });
  });
  app.use((request, response, next) => {
    if (bearerAllows(request.get("authorization"), deps.token)) {
      next();
      return;
    }
    response.set("www-authenticate", 'Bearer realm="tallyd"');
    sendError(response, UNAUTHORIZED, "send the ADMIN_TOKEN as Authorization: Bearer TOKEN");
  });
  app.get("/readyz", async (request, response) => {
    const all = await deps.readiness();
    const only = namesIn(request.query["only"]);
    const checks = all.checks.filter(({ name }) => only.length === 0 || only.includes(name));
    const ready = checks.length > 0 && checks.every(({ ok }) => ok);
    response.status(ready ? OK : UNAVAILABLE).json({ ready, checks });
  });
  app.get("/metrics", async (_request, response) => {
    const { contentType, body } = await deps.metrics();
    response.set("content-type", contentType).send(body);
  });
  for (const router of deps.routers) app.use(router);
  app.use((request, response) => {
    sendError(response, NOT_FOUND, `${request.method} ${request.path} is not here`);
  });
  app.use((error: unknown, request: Request, response: Response, next: NextFunction) => {
    deps.log.warn(`${request.method} ${request.path} failed`, { error });
    if (response.headersSent) {
      next(error);
      return;
    }
    sendError(response, FAULT, "this request failed; the log has the reason");
  });
  return app;
}

function sendError(response: Response, status: number, message: string): void {
  response.status(status).json({ error: { message } });
}

function namesIn(query: unknown): string[] {
  return typeof query === "string" ? query.split(",").filter((name) => name !== "") : [];
}
