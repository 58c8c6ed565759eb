/**
 * The daily digest: what happened in the last whole day, and whether all is clear. The daemon's
 * alone, one per day of the configured zone, whatever the number of replicas.
 */
import type { Pool } from "pg";

import type { Document } from "../alert/document.ts";
import { payloadOf } from "../alert/payload.ts";
import { webhookDay } from "../alert/program-events.ts";
import type { Settings } from "../core/settings.ts";
import { gatherReport } from "../report/gather.ts";
import { reportRange } from "../report/range.ts";
import type { Report } from "../report/report.ts";
import { reportSections, verdictLine } from "../report/text.ts";
import { digestDay, takeDigestDay } from "../store/daily-digests.ts";
import type { NewMessage } from "../store/outbox.ts";
import { enqueue } from "../store/outbox.ts";
import { withTx } from "../store/tx.ts";
import { expectedSources } from "./expected-sources.ts";

export interface DailyDigestDeps {
  readonly pool: Pool;
  readonly settings: Settings;
}

// A section of a message that people read; the rest is in `tallyd report`.
const LINES_MAX = 12;

/** Writes the digest of the day before when its hour has come. `now` is the database's time. */
export async function tellDay(
  deps: DailyDigestDeps,
  now: Date,
): Promise<{ readonly digests: number }> {
  const { pool, settings } = deps;
  const { timeZone, digestAt } = settings;
  if (digestAt === null) return { digests: 0 };
  const { day, due, first } = await digestDay(pool, { now, timeZone, at: digestAt });
  if (!due) return { digests: 0 };
  if (first) {
    // A tallyd that is new here has watched nothing of the day before: it begins tomorrow.
    await takeDigestDay(pool, { day, told: false, now });
    return { digests: 0 };
  }
  const range = await reportRange(pool, { from: null, to: null, timeZone, now });
  const expected = expectedSources(settings);
  const report = await gatherReport(pool, { range, now, settings, expected });
  const told = await withTx(pool, async (tx) => {
    if (!(await takeDigestDay(tx, { day, told: true, now }))) return false;
    for (const message of messagesOf(settings, report, now)) {
      const about = { incidentId: null, kind: "daily", severity: "info" as const };
      await enqueue(tx, { ...about, ...message, createdAt: now, dueAt: now });
    }
    return true;
  });
  return { digests: told ? 1 : 0 };
}

/** People get words; a webhook gets what they are made of. */
function messagesOf(
  settings: Settings,
  report: Report,
  at: Date,
): readonly Pick<NewMessage, "channel" | "payload">[] {
  const document = digestOfDay(report);
  const people = settings.slackWebhookUrl === null ? "log" : "slack";
  const data = { allClear: isClear(report), title: document.title, report };
  return [
    { channel: people, payload: { ...payloadOf(document) } },
    ...(settings.webhook === null
      ? []
      : [{ channel: "webhook", payload: { ...webhookDay(document, data, at) } }]),
  ];
}

function isClear({ complete, open }: Report): boolean {
  return complete && open === 0;
}

/** The message about a day. */
export function digestOfDay(report: Report): Document {
  const { range } = report;
  const day = dayOf(report);
  const clear = isClear(report);
  return {
    title: clear ? `${day}: all clear` : `${day}: ${verdictLine(report)}`,
    parts: [
      ...(clear ? [{ kind: "text" as const, text: `${verdictLine(report)}.` }] : []),
      ...reportSections(report).map(({ title, lines }) => ({
        kind: "list" as const,
        title: capital(title),
        lines: lines.slice(0, LINES_MAX),
        more: Math.max(0, lines.length - LINES_MAX),
      })),
      {
        kind: "list",
        title: "Look further",
        lines: [`tallyd report --from ${range.from} --to ${range.to}`],
        more: 0,
      },
    ],
  };
}

/** The day of the range in its zone: Sweden writes dates as ISO 8601 does. */
function dayOf({ range }: Report): string {
  const { timeZone } = range;
  return new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short" }).format(
    new Date(range.from),
  );
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
