import type { Route } from "./call.ts";

/** A route with the id its path gave (empty when the path has none). */
export interface Match {
  readonly route: Route;
  readonly id: string;
}

/** Finds the route of a request; undefined when no endpoint has this method and path. */
export type Router = (method: string, path: string) => Match | undefined;

const ID = ":id";

/** A router over fixed routes. A literal segment wins over an id (`/search` over `/:id`). */
export function createRouter(routes: readonly Route[]): Router {
  const exact = new Map<string, Route>();
  for (const route of routes) exact.set(`${route.method} ${route.path}`, route);
  return (method, path) => {
    const literal = exact.get(`${method} ${path}`);
    if (literal !== undefined) return { route: literal, id: "" };
    const segments = path.split("/");
    // The id is the last segment or the one before it; `/v1/charges/ch_1/refunds`.
    for (const position of [segments.length - 1, segments.length - 2]) {
      const id = segments[position] ?? "";
      if (id === "") continue;
      const template = segments.with(position, ID).join("/");
      const route = exact.get(`${method} ${template}`);
      if (route !== undefined) return { route, id };
    }
    return undefined;
  };
}
