import { userInfo } from "node:os";

import { CODES } from "../../core/finding.ts";
import type { Severity } from "../../core/finding.ts";
import { addMs } from "../../core/clock.ts";
import { RequestError } from "../../core/errors.ts";
import { formatAmount } from "../../core/money.ts";
import { visibleLine } from "../../core/visible.ts";
import { acknowledge, closeByPerson, mute, reopenByPerson } from "../../incident/act.ts";
import type { Act } from "../../incident/act.ts";
import { listIncidents, presentIncident, showIncident } from "../../incident/present.ts";
import type { IncidentDetailJson, IncidentJson } from "../../incident/present.ts";
import type { IncidentFilter } from "../../store/incident-list.ts";
import { databaseNow } from "../../store/database-now.ts";
import type { Db } from "../../store/pool.ts";
import { EXIT } from "../command.ts";
import type { Command, CommandContext, CommandResult } from "../command.ts";
import type { Database } from "../../daemon/open-database.ts";
import { evidenceLines } from "../evidence-text.ts";
import { didYouMean } from "../did-you-mean.ts";
import { UsageError } from "../failure.ts";
import { tableText } from "../table.ts";
import { parseLength, parseTime } from "../when.ts";
import { withDatabase } from "../with-database.ts";

const STATUSES = ["open", "acknowledged", "muted", "closed"] as const;
const SEVERITIES = ["info", "warning", "critical"] as const;
const ACTIONS = ["list", "show", "ack", "mute", "close", "reopen"] as const;

/** The options of each action: one that does nothing there is a slip that must be told. */
const OPTIONS: Readonly<Record<(typeof ACTIONS)[number], readonly string[]>> = {
  list: ["status", "code", "severity", "about", "all"],
  show: [],
  ack: ["note", "by"],
  mute: ["for", "until", "note", "by"],
  close: ["note", "by"],
  reopen: ["note", "by"],
};

/** `tallyd incidents` */
export const incidents: Command = {
  name: "incidents",
  summary: "list, show, acknowledge, mute, close and reopen incidents",
  usage: [
    "[list] [--status STATUS] [--code CODE] [--severity SEVERITY] [--about ID] [--all]",
    "show ID",
    "ack ID [--note TEXT]",
    "mute ID [--for 24h | --until TIME] [--note TEXT]",
    "close ID [--note TEXT]",
    "reopen ID [--note TEXT]",
  ],
  details: [
    "list shows what is not closed; --all shows closed ones too. Closing is a verdict about the",
    "facts as they are: it lasts until they get worse. A mute ends at its time, or when they do.",
    "reopen takes an acknowledgement, a mute or a person's closing back.",
  ],
  options: {
    status: { type: "string", value: "STATUS", help: `list: ${STATUSES.join(", ")}` },
    code: { type: "string", value: "CODE", help: "list: e.g. double_charge" },
    severity: { type: "string", value: "SEVERITY", help: `list: ${SEVERITIES.join(", ")}` },
    about: { type: "string", value: "ID", help: "list: an intent, charge or operation" },
    all: { type: "boolean", help: "list: closed ones too" },
    for: { type: "string", value: "24h", help: "mute: how long" },
    until: { type: "string", value: "TIME", help: "mute: until when" },
    note: { type: "string", value: "TEXT", help: "ack, mute, close, reopen: why" },
    by: { type: "string", value: "NAME", help: "ack, mute …: who; default: this user" },
  },
  argsMax: 2,
  run: async (context) => {
    const action = oneOf(context.args[0] ?? "list", ACTIONS, "action");
    const id = context.args[1];
    refuseOthers(action, context.flags);
    if (action === "list") {
      if (id !== undefined) throw new UsageError([`"${id}" is too much: list takes no id`]);
      const filter = filterOf(context);
      return withDatabase(context, ({ pool }) => list(pool, filter));
    }
    if (id === undefined) throw new UsageError([`${action} needs an id: see incidents list`]);
    if (action === "show") return withDatabase(context, ({ pool }) => show(pool, id));
    const until = action === "mute" ? muteEnd(context) : () => null;
    return withDatabase(context, (database) => act(database, context, { action, id, until }));
  },
};

function refuseOthers(action: keyof typeof OPTIONS, flags: CommandContext["flags"]): void {
  const known = new Set(Object.values(OPTIONS).flat());
  const given = [...known].filter((name) => (flags[name] ?? false) !== false);
  const faults = given
    .filter((name) => !OPTIONS[action].includes(name))
    .map((name) => {
      const allowed = OPTIONS[action].map((one) => `--${one}`).join(", ") || "none";
      const where = ACTIONS.filter((one) => OPTIONS[one].includes(name)).join(", ");
      return `incidents ${action}: saw --${name}; allowed: ${allowed}. --${name} is for ${where}.`;
    });
  if (faults.length > 0) throw new UsageError(faults);
}

function oneOf<T extends string>(seen: string, allowed: readonly T[], what: string): T {
  const found = allowed.find((one) => one === seen);
  if (found !== undefined) return found;
  throw new UsageError([
    `${what}: saw "${seen}"; allowed: ${allowed.join(", ")}.${didYouMean(seen, allowed)}`,
  ]);
}

function filterOf({ flags }: CommandContext): IncidentFilter {
  const given = <T extends string>(name: string, allowed: readonly T[]): T[] => {
    const value = flags[name];
    if (typeof value !== "string") return [];
    return value.split(",").map((one) => oneOf(one.trim(), allowed, `--${name}`));
  };
  const statuses = given("status", STATUSES);
  const notClosed = STATUSES.filter((status) => status !== "closed");
  return {
    statuses: statuses.length > 0 || flags["all"] === true ? statuses : notClosed,
    codes: given("code", CODES),
    severities: given<Severity>("severity", SEVERITIES),
    ...(typeof flags["about"] === "string" ? { about: flags["about"] } : {}),
  };
}

async function list(db: Db, filter: IncidentFilter): Promise<CommandResult> {
  const found = await listIncidents(db, filter, await databaseNow(db));
  const rows = found.map((one) => [
    one.id,
    one.severity,
    one.status,
    one.code,
    amountText(one),
    one.firstSeen.slice(0, 16).replace("T", " "),
    one.summary.split("\n")[0] ?? "",
  ]);
  const head = ["ID", "SEVERITY", "STATUS", "CODE", "AT RISK", "SINCE (UTC)", "SUMMARY"];
  const text = rows.length === 0 ? "no incidents" : tableText(head, rows);
  return { exitCode: EXIT.ok, json: found, text };
}

async function show(db: Db, id: string): Promise<CommandResult> {
  const found = await showIncident(db, id, await databaseNow(db));
  if (found === null) {
    const hint = "`tallyd incidents list --all` shows the ids (inc_…) of all";
    throw new RequestError("not_known", `there is no incident "${id}"`, [hint]);
  }
  return { exitCode: EXIT.ok, json: found, text: detailText(found) };
}

async function act(
  { pool }: Database,
  context: CommandContext,
  wanted: {
    readonly action: "ack" | "mute" | "close" | "reopen";
    readonly id: string;
    readonly until: (now: Date) => Date | null;
  },
): Promise<CommandResult> {
  const now = await databaseNow(pool);
  const { note, by } = context.flags;
  const settings = await context.settings();
  const deed: Act = {
    id: wanted.id,
    actor: typeof by === "string" ? by : userName(),
    note: typeof note === "string" ? note : null,
    now,
    programs: settings,
    people: settings,
  };
  const deeds = {
    ack: () => acknowledge(pool, deed),
    mute: () => mute(pool, { ...deed, until: wanted.until(now) }),
    close: () => closeByPerson(pool, deed),
    reopen: () => reopenByPerson(pool, { ...deed, remindersMs: settings.remindersMs }),
  };
  const after = await deeds[wanted.action]();
  const json = presentIncident(after, now);
  const end = json.mutedUntil ?? "it gets worse";
  const until = json.status === "muted" ? ` until ${end}` : "";
  return { exitCode: EXIT.ok, json, text: `${json.id} is ${json.status}${until}` };
}

/** When a mute ends, counted from the database's clock; null: when the facts get worse. */
function muteEnd({ flags }: CommandContext): (now: Date) => Date | null {
  const length = flags["for"];
  const until = flags["until"];
  if (typeof length === "string" && typeof until === "string") {
    throw new UsageError(["--for and --until cannot be given together"]);
  }
  if (typeof length === "string") {
    const ms = parseLength(length, "--for");
    return (now) => addMs(now, ms);
  }
  const time = typeof until === "string" ? parseTime(until, "--until") : null;
  return () => time;
}

function amountText({ amountAtRisk, currency }: IncidentJson): string {
  if (amountAtRisk === null) return "";
  // A sum over currencies that differ has none, and no unit.
  return currency === null ? amountAtRisk : formatAmount(BigInt(amountAtRisk), currency);
}

function detailText(one: IncidentDetailJson): string {
  const history = one.history.map(({ at, step, actor, note, evidence }) => {
    const words = [...changesOf(evidence), ...(note === null ? [] : [note])];
    const said = words.length === 0 ? "" : `: ${words.join("; ")}`;
    return `  ${timeText(at)}  ${step} by ${actor}${said}`;
  });
  const evidence = evidenceLines(one.evidence);
  return [
    `${one.id}  ${one.code}  ${one.severity}  ${statusText(one)}`,
    one.summary,
    `seen ${String(one.count)} times from ${timeText(one.firstSeen)} to ${timeText(one.lastSeen)} UTC`,
    "",
    `what to do: ${one.advice}`,
    ...(one.amountAtRisk === null ? [] : [`at risk: ${amountText(one)}`]),
    ...(one.operation === null ? [] : [`operation: ${one.operation}`]),
    ...(one.intents.length === 0 ? [] : [`intents: ${one.intents.join(", ")}`]),
    ...(one.charges.length === 0 ? [] : [`charges: ${one.charges.join(", ")}`]),
    ...(evidence.length === 0 ? [] : ["evidence:", ...evidence]),
    "history (UTC):",
    ...history,
  ]
    .map(visibleLine)
    .join("\n");
}

/** What got worse with a step; empty: nothing, or it is not said. */
function changesOf({ changes }: Readonly<Record<string, unknown>>): string[] {
  return Array.isArray(changes) ? changes.map(String) : [];
}

function statusText({ status, mutedUntil, closedBy }: IncidentJson): string {
  if (status === "closed") return closedBy === null ? status : `closed by ${closedBy}`;
  if (status !== "muted") return status;
  return `muted until ${mutedUntil === null ? "it gets worse" : `${timeText(mutedUntil)} UTC`}`;
}

function timeText(iso: string): string {
  return iso.slice(0, 19).replace("T", " ");
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run under a number that has no name.
    return "unknown";
  }
}
