/** Plain JSON-RPC to a local chain. */

/** An error that the node answered. */
export class LocalRpcError extends Error {
  readonly code: number;

  constructor(method: string, error: { readonly code: number; readonly message: string }) {
    super(`${method}: ${error.message}`);
    this.name = "LocalRpcError";
    this.code = error.code;
  }
}

interface Answer {
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

/** One call. Throws LocalRpcError for what the node refuses. */
export async function call(
  url: string,
  method: string,
  params: readonly unknown[],
): Promise<unknown> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const answer = (await response.json()) as Answer;
  if (answer.error !== undefined) throw new LocalRpcError(method, answer.error);
  return answer.result;
}
