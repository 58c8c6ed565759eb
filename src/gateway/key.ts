/** The Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header-07 and later). */
import { canonicalJson, sha256 } from "./canonical.ts";
import { headerOf, readContent } from "./request.ts";
import type { GatewayRequest, Read, RequestLimits } from "./request.ts";
import type { Arrival } from "./store.ts";

// The length that Stripe allows; RFC 8941 strings hold printable ASCII.
const KEY_CHARACTERS_MAX = 255;
const QUOTED = /^"((?:[ !#-[\]-~]|\\["\\])*)"$/;
// Many clients send the key bare. It is read as the same text in quotes.
const BARE = /^[!#-+\--:<-[\]-~]+$/;

/** What a keyed request is known by; `null`: it has no key and needs none. */
export function readKey(
  request: GatewayRequest,
  options: RequestLimits & {
    readonly scope: string;
    readonly principal: string;
    readonly required: boolean;
  },
): Read<Arrival | null> {
  const header = headerOf(request, "idempotency-key");
  if (header === null) return options.required ? { fault: "key_missing" } : { value: null };
  if (header.length > options.headerBytesMax) return { fault: "header_too_large" };
  const key = keyOf(header.trim());
  if (key === null) return { fault: "key_invalid" };
  const content = readContent(request, options);
  if ("fault" in content) return content;
  const { scope, principal } = options;
  const fingerprint = sha256(canonicalJson([content.value]));
  return { value: { scope, principal, id: key, fingerprint, authHash: null } };
}

function keyOf(header: string): string | null {
  const quoted = QUOTED.exec(header)?.[1];
  const key = quoted === undefined ? header : quoted.replace(/\\(.)/g, "$1");
  if (quoted === undefined && !BARE.test(header)) return null;
  return key.length >= 1 && key.length <= KEY_CHARACTERS_MAX ? key : null;
}
