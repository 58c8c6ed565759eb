import { createHash, timingSafeEqual } from "node:crypto";

const SCHEME = /^Bearer +(.+)$/i;

/**
 * Does the `Authorization` header carry `token`? The time of the comparison tells nothing about
 * the token, not even its length. Without a token everybody may come.
 */
export function bearerAllows(header: string | undefined, token: string | null): boolean {
  if (token === null) return true;
  const given = SCHEME.exec(header ?? "")?.[1]?.trim() ?? "";
  return timingSafeEqual(digest(given), digest(token));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text, "utf8").digest();
}
