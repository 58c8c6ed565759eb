/** What people read about what one of them did to an incident elsewhere than in Slack. */
import type { Incident } from "../core/incident.ts";
import type { Document, Part } from "./document.ts";
import { CODE_TITLES, moneyWords } from "./message.ts";

/** A step of an incident's life that a person made. */
export type PersonStep = "acknowledged" | "muted" | "unmuted" | "closed" | "reopened";

const CLOSED: Part = { kind: "text", text: "Worse facts bring it back." };

/** The message; `note` `null`: nothing was said. */
export function actDocument(
  incident: Incident,
  act: { readonly step: PersonStep; readonly actor: string; readonly note: string | null },
): Document {
  const { step, actor, note } = act;
  const who = note === null || note === "" ? `By ${actor}.` : `By ${actor}: ${note}`;
  return {
    title: `${doneWords(step, incident)}: ${CODE_TITLES[incident.code]}${moneyWords(incident)}`,
    parts: [
      { kind: "text", text: who },
      ...(step === "closed" ? [CLOSED] : []),
      { kind: "text", text: incident.summary },
      {
        kind: "list",
        title: "Look further",
        lines: [`tallyd incidents show ${incident.id}`],
        more: 0,
      },
    ],
  };
}

function doneWords(step: PersonStep, { code, mutedUntil }: Incident): string {
  switch (step) {
    case "acknowledged":
      return "Acknowledged";
    case "muted":
      return `Muted until ${mutedUntil === null ? "it gets worse" : minute(mutedUntil)}`;
    case "unmuted":
      return "No longer muted";
    case "closed":
      return code === "double_charge" ? "Closed as not a duplicate" : "Closed";
    case "reopened":
      return "Open again";
  }
}

function minute(time: Date): string {
  return `${time.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}
