/** One POST of JSON to a program, within a time and without following where an answer leads. */

/** The answer, its head at most. */
export interface Answer {
  readonly status: number;
  readonly body: string;
  readonly retryAfter: string | null;
}

// A program that takes longer to say yes works before it answers; a stop must not wait for that.
const POST_TIMEOUT_MS = 10_000;
// What is shown of an answer fits in a line; a longer one is not read.
const ANSWER_BYTES_MAX = 2_000;

/** Sends `body` as it is. Throws what `fetch` throws. */
export async function post(
  url: string,
  request: { readonly headers: Readonly<Record<string, string>>; readonly body: string },
): Promise<Answer> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", "user-agent": "tallyd", ...request.headers },
    body: request.body,
    // A redirect would carry alerts, and their signature, to an address that nobody configured.
    redirect: "manual",
    signal: AbortSignal.timeout(POST_TIMEOUT_MS),
  });
  const retryAfter = response.headers.get("retry-after");
  return { status: response.status, body: await headOf(response), retryAfter };
}

async function headOf(response: Response): Promise<string> {
  if (response.body === null) return "";
  const chunks: Uint8Array[] = [];
  let size = 0;
  // The rest of a long answer is not waited for: leaving the loop ends the reading.
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= ANSWER_BYTES_MAX) break;
  }
  return Buffer.concat(chunks).subarray(0, ANSWER_BYTES_MAX).toString("utf8");
}
