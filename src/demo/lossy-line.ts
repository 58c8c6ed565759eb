/** A line to Stripe that delivers every request and loses every answer. */
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";

export interface LossyLine {
  readonly url: string;
  readonly close: () => Promise<void>;
}

/** Opens the line to `target`; each call is executed there, and its caller sees a reset. */
export async function openLossyLine(target: string): Promise<LossyLine> {
  const server = createServer((incoming, answer) => {
    const lose = (): void => {
      answer.destroy();
    };
    const { method, headers } = incoming;
    const onward = request(new URL(incoming.url ?? "/", target), { method, headers });
    onward.on("response", (response) => {
      response.resume().on("end", lose);
    });
    onward.on("error", lose);
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${String(port)}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => {
        server.close(() => {
          resolve();
        });
      });
    },
  };
}
