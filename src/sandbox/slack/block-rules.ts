/** Slack's limits on a message (Block Kit reference). Lengths in characters. */
const BLOCKS_MAX = 50;
const SECTION_TEXT_MAX = 3_000;
const HEADER_TEXT_MAX = 150;
const FIELDS_MAX = 10;
const FIELD_TEXT_MAX = 2_000;
const ACTIONS_MAX = 25;
const CONTEXT_MAX = 10;
const BUTTON_TEXT_MAX = 75;
const CONFIRM_TITLE_MAX = 100;
const CONFIRM_TEXT_MAX = 300;
const CONFIRM_BUTTON_MAX = 30;
const URL_MAX = 3_000;
const ID_MAX = 255;
const VALUE_MAX = 2_000;

type Thing = Readonly<Record<string, unknown>>;

function isThing(value: unknown): value is Thing {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The complaint about a text object, or null. */
function textFault(value: unknown, max: number, kinds: readonly string[]): string | null {
  if (!isThing(value)) return "text object expected";
  const { type, text } = value;
  if (typeof type !== "string" || !kinds.includes(type)) return `text type ${String(type)}`;
  if (typeof text !== "string" || text.length === 0) return "text is empty";
  return text.length > max ? `text is longer than ${String(max)}` : null;
}

const ANY_TEXT = ["mrkdwn", "plain_text"];
const PLAIN_TEXT = ["plain_text"];

function stringFault(value: unknown, name: string, max: number): string | null {
  if (value === undefined) return null;
  if (typeof value !== "string") return `${name} must be text`;
  return value.length > max ? `${name} is longer than ${String(max)}` : null;
}

function firstFault(faults: readonly (string | null)[]): string | null {
  return faults.find((fault) => fault !== null) ?? null;
}

function buttonFault(value: unknown): string | null {
  if (!isThing(value)) return "element expected";
  if (value["type"] !== "button") return null;
  return firstFault([
    textFault(value["text"], BUTTON_TEXT_MAX, PLAIN_TEXT),
    stringFault(value["url"], "url", URL_MAX),
    stringFault(value["value"], "value", VALUE_MAX),
    stringFault(value["action_id"], "action_id", ID_MAX),
    value["confirm"] === undefined ? null : confirmFault(value["confirm"]),
  ]);
}

function confirmFault(value: unknown): string | null {
  if (!isThing(value)) return "confirm must be an object";
  return firstFault([
    textFault(value["title"], CONFIRM_TITLE_MAX, PLAIN_TEXT),
    textFault(value["text"], CONFIRM_TEXT_MAX, ANY_TEXT),
    textFault(value["confirm"], CONFIRM_BUTTON_MAX, PLAIN_TEXT),
    textFault(value["deny"], CONFIRM_BUTTON_MAX, PLAIN_TEXT),
  ]);
}

function sectionFault(block: Thing): string | null {
  const { text, fields, accessory } = block;
  if (text === undefined && fields === undefined) return "section needs text or fields";
  if (fields !== undefined && (!Array.isArray(fields) || fields.length === 0)) return "no fields";
  const list: readonly unknown[] = Array.isArray(fields) ? fields : [];
  if (list.length > FIELDS_MAX) return `more than ${String(FIELDS_MAX)} fields`;
  return firstFault([
    text === undefined ? null : textFault(text, SECTION_TEXT_MAX, ANY_TEXT),
    ...list.map((field) => textFault(field, FIELD_TEXT_MAX, ANY_TEXT)),
    accessory === undefined ? null : buttonFault(accessory),
  ]);
}

function elementsFault(
  block: Thing,
  max: number,
  fault: (item: unknown) => string | null,
): string | null {
  const { elements } = block;
  if (!Array.isArray(elements) || elements.length === 0) return "elements expected";
  if (elements.length > max) return `more than ${String(max)} elements`;
  return firstFault(elements.map((item: unknown) => fault(item)));
}

function contextFault(item: unknown): string | null {
  if (isThing(item) && item["type"] === "image") return imageFault(item);
  return textFault(item, SECTION_TEXT_MAX, ANY_TEXT);
}

function imageFault(block: Thing): string | null {
  if (typeof block["alt_text"] !== "string") return "image needs alt_text";
  return firstFault([
    stringFault(block["image_url"], "image_url", URL_MAX),
    stringFault(block["alt_text"], "alt_text", VALUE_MAX),
  ]);
}

function blockFault(block: unknown): string | null {
  if (!isThing(block)) return "block expected";
  const id = stringFault(block["block_id"], "block_id", ID_MAX);
  if (id !== null) return id;
  switch (block["type"]) {
    case "section":
      return sectionFault(block);
    case "header":
      return textFault(block["text"], HEADER_TEXT_MAX, PLAIN_TEXT);
    case "actions":
      return elementsFault(block, ACTIONS_MAX, buttonFault);
    case "context":
      return elementsFault(block, CONTEXT_MAX, contextFault);
    case "image":
      return imageFault(block);
    case "divider":
    case "rich_text":
      return null;
    default:
      return `unsupported block type ${String(block["type"])}`;
  }
}

/** Why Slack would refuse these blocks, or null when it takes them. */
export function blocksFault(blocks: unknown): string | null {
  if (!Array.isArray(blocks)) return "blocks must be a list";
  if (blocks.length > BLOCKS_MAX) return `more than ${String(BLOCKS_MAX)} blocks`;
  const ids = blocks
    .filter(isThing)
    .map((block) => block["block_id"])
    .filter((id) => id !== undefined);
  if (new Set(ids).size < ids.length) return "block_id used twice";
  return firstFault(blocks.map((block: unknown) => blockFault(block)));
}
