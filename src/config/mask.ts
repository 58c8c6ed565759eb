// A shorter secret would be half told by its first four characters.
const SHOWN_FROM_LENGTH = 16;
const SHOWN_CHARACTERS = 4;
// Longer values only hide the message around them.
const SEEN_LENGTH_MAX = 120;

/** A secret for people: `sk_t…(24 characters)`; short ones show their length alone. */
export function maskSecret(value: string): string {
  const length = `(${String(value.length)} characters)`;
  if (value.length < SHOWN_FROM_LENGTH) return length;
  return `${value.slice(0, SHOWN_CHARACTERS)}…${length}`;
}

/** A database URL without its password and its parameters. */
export function maskDatabaseUrl(value: string): string {
  if (!URL.canParse(value)) return maskSecret(value);
  const url = new URL(value);
  const user = url.username === "" ? "" : `${url.username}${url.password === "" ? "" : ":***"}@`;
  return `${url.protocol}//${user}${url.host}${url.pathname}`;
}

/** A URL whose path is the secret (a Slack hook): the origin alone. */
export function maskHookUrl(value: string): string {
  if (!URL.canParse(value)) return maskSecret(value);
  const url = new URL(value);
  return `${url.protocol}//${url.host}/…(${String(value.length)} characters)`;
}

/** Any value as a message shows it: quoted text, JSON for the rest, cut where it is long. */
export function showSeen(value: unknown): string {
  if (value === undefined) return "nothing";
  const text = JSON.stringify(value);
  return text.length <= SEEN_LENGTH_MAX ? text : `${text.slice(0, SEEN_LENGTH_MAX)}…`;
}
