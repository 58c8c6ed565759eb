/** The line between a buyer and a shop, which can lose an answer after the shop has settled. */
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** The line. */
export interface Line {
  readonly url: string;
  /** The next answer to a request that pays is lost. */
  readonly loseNext: () => void;
  readonly close: () => Promise<void>;
}

// Of the connection, not of the message that passes.
const NOT_PASSED: ReadonlySet<string> = new Set(["connection", "host", "keep-alive"]);
const NOT_RETURNED: ReadonlySet<string> = new Set(["connection", "content-length", "keep-alive"]);

/** Opens a line to a shop. */
export async function openLine(target: string): Promise<Line> {
  let lose = false;
  const server = createServer((request, response) => {
    const pays = request.headers["payment-signature"] !== undefined;
    const lost = lose && pays;
    if (lost) lose = false;
    pass(target, request, response, lost).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    loseNext: () => {
      lose = true;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function pass(
  target: string,
  request: IncomingMessage,
  response: ServerResponse,
  lost: boolean,
): Promise<void> {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (typeof value === "string" && !NOT_PASSED.has(name)) headers.set(name, value);
  }
  const answer = await fetch(`${target}${request.url ?? "/"}`, { headers });
  const body = await answer.text();
  if (lost) {
    response.destroy();
    return;
  }
  const returned = [...answer.headers].filter(([name]) => !NOT_RETURNED.has(name));
  response.writeHead(answer.status, Object.fromEntries(returned));
  response.end(body);
}
