import { listAny } from "../call.ts";
import type { Call, Route } from "../call.ts";
import { invalidParam, missing } from "../errors.ts";
import { isKept, renderEvent, renderThinEvent, snapshotId } from "../events.ts";
import { flag, text, texts } from "../params.ts";
import type { EventRecord, Wire } from "../records.ts";
import { fits } from "../rules.ts";

/** Stripe's limit on `types`. */
const TYPES_MAX = 20;

function typeFilter(call: Call): (event: EventRecord) => boolean {
  const type = text(call.params, "type") ?? null;
  const types = texts(call.params, "types");
  if (type !== null && types !== undefined) {
    throw invalidParam("You may pass either type or types, not both", "types");
  }
  if (types !== undefined && types.length > TYPES_MAX) {
    throw invalidParam(`types may name at most ${String(TYPES_MAX)} types`, "types");
  }
  if (type !== null) return (event) => fits(type, event.type);
  return (event) => types === undefined || types.includes(event.type);
}

/** Lists snapshot events in the version each was made with; there is no filter by key. */
function list(call: Call): Wire {
  const now = call.world.clock.seconds();
  const delivered = flag(call.params, "delivery_success");
  const typed = typeFilter(call);
  return listAny(call, {
    store: call.space.events,
    list: call.space.events.all,
    filters: ["type", "types", "delivery_success"],
    keep: (event) =>
      isKept(event, now) &&
      typed(event) &&
      (delivered === undefined || (event.pending.length === 0) === delivered),
    show: (event) => renderEvent(event),
  });
}

function kept(call: Call, event: EventRecord | undefined): EventRecord {
  const gone = event === undefined || !isKept(event, call.world.clock.seconds());
  if (gone) throw missing("event", call.id, "id");
  return event;
}

/** Endpoints of events, snapshot (v1) and thin (v2). */
export const EVENT_ROUTES: readonly Route[] = [
  { method: "GET", path: "/v1/events", handle: list },
  {
    method: "GET",
    path: "/v1/events/:id",
    handle: (call) => renderEvent(kept(call, call.space.events.get(call.id))),
  },
  {
    method: "GET",
    path: "/v2/core/events/:id",
    handle: (call) => renderThinEvent(kept(call, call.space.events.get(snapshotId(call.id)))),
  },
];
