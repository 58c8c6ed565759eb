import { invalidParam } from "./errors.ts";
import { isList } from "./form.ts";
import type { Params } from "./form.ts";
import type { Metadata, Wire } from "./records.ts";

/** Stripe's limit on metadata: 50 keys of 40 characters, values of 500. */
const METADATA_KEYS_MAX = 50;
const METADATA_KEY_LENGTH_MAX = 40;
const METADATA_VALUE_LENGTH_MAX = 500;

const INTEGER = /^-?\d{1,30}$/;

/** A text parameter; undefined when absent, null when sent empty (Stripe's way to unset). */
export function text(params: Params, name: string): string | null | undefined {
  const value = params[name];
  if (value === undefined) return undefined;
  if (typeof value !== "string") throw invalidParam(`Invalid string: ${name}`, name);
  return value === "" ? null : value;
}

/** A text parameter that must be there. */
export function requiredText(params: Params, name: string): string {
  const value = text(params, name);
  if (value === undefined || value === null) {
    throw invalidParam(`Missing required param: ${name}.`, name, "parameter_missing");
  }
  return value;
}

/** A whole number of minor units; undefined when absent. */
export function amount(params: Params, name: string): bigint | undefined {
  const value = text(params, name);
  if (value === undefined || value === null) return undefined;
  if (!INTEGER.test(value)) {
    throw invalidParam(`Invalid integer: ${value}`, name, "parameter_invalid_integer");
  }
  return BigInt(value);
}

/** A small whole number, such as a limit or a time in seconds. */
export function integer(params: Params, name: string): number | undefined {
  const value = amount(params, name);
  return value === undefined ? undefined : Number(value);
}

/** `true` or `false`; undefined when absent. */
export function flag(params: Params, name: string): boolean | undefined {
  const value = text(params, name);
  if (value === undefined || value === null) return undefined;
  if (value !== "true" && value !== "false") throw invalidParam(`Invalid boolean: ${value}`, name);
  return value === "true";
}

/** A nested group of parameters; undefined when absent. */
export function group(params: Params, name: string): Params | undefined {
  const value = params[name];
  if (value === undefined || value === "") return undefined;
  if (typeof value === "string" || isList(value)) throw invalidParam(`Invalid object`, name);
  return value;
}

/** A list of texts, in either spelling (`a[]=` or `a[0]=`); a bare text counts as one. */
export function texts(params: Params, name: string): readonly string[] | undefined {
  const value = params[name];
  if (value === undefined || value === "") return undefined;
  if (typeof value === "string") return [value];
  if (!isList(value)) throw invalidParam(`Invalid array`, name);
  return value.map((item) => {
    if (typeof item !== "string") throw invalidParam(`Invalid array`, name);
    return item;
  });
}

/** Metadata over what is there: an empty value removes its key, an empty group removes all. */
export function metadata(params: Params, current: Metadata = {}): Metadata {
  const value = params["metadata"];
  if (value === undefined) return current;
  if (value === "") return {};
  if (typeof value === "string") throw invalidParam("Invalid object", "metadata");
  const merged: Record<string, string> = { ...current };
  for (const [key, item] of Object.entries(value)) {
    if (typeof item !== "string") {
      throw invalidParam("Metadata values must be strings", `metadata[${key}]`);
    }
    if (key.length > METADATA_KEY_LENGTH_MAX || item.length > METADATA_VALUE_LENGTH_MAX) {
      throw invalidParam("Metadata key or value is too long", `metadata[${key}]`);
    }
    if (item === "") Reflect.deleteProperty(merged, key);
    else merged[key] = item;
  }
  if (Object.keys(merged).length > METADATA_KEYS_MAX) {
    throw invalidParam(`You can have at most ${String(METADATA_KEYS_MAX)} keys`, "metadata");
  }
  return merged;
}

/** Nested parameters as JSON, for what is only stored and shown again (addresses, shipping). */
export function asWire(params: Params | undefined): Wire | null {
  return params === undefined ? null : params;
}

/** Refuses parameters that the endpoint does not know, as the API does. */
export function allowOnly(params: Params, names: readonly string[]): void {
  for (const name of Object.keys(params)) {
    if (name !== "expand" && !names.includes(name)) {
      throw invalidParam(`Received unknown parameter: ${name}`, name, "parameter_unknown");
    }
  }
}
