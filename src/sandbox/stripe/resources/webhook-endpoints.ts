import type { Call, Route } from "../call.ts";
import type { Endpoint } from "../deliver.ts";
import { invalidParam, missing } from "../errors.ts";
import { flag, metadata, requiredText, text, texts } from "../params.ts";
import type { Wire } from "../records.ts";
import { listObject } from "../shape-parts.ts";

function shown(endpoint: Endpoint): Wire {
  return {
    id: endpoint.id,
    object: "webhook_endpoint",
    api_version: endpoint.apiVersion,
    application: null,
    created: endpoint.created,
    description: endpoint.description,
    enabled_events: endpoint.enabledEvents,
    livemode: endpoint.livemode,
    metadata: endpoint.metadata,
    status: endpoint.status,
    url: endpoint.url,
  };
}

function find(call: Call): Endpoint {
  const endpoint = call.world.endpoints.get(call.id);
  if (endpoint?.livemode !== call.space.livemode) {
    throw missing("webhook endpoint", call.id, "webhook_endpoint");
  }
  return endpoint;
}

function create(call: Call): Wire {
  const { params, world, space } = call;
  const enabledEvents = texts(params, "enabled_events");
  if (enabledEvents === undefined) {
    throw invalidParam("Missing required param: enabled_events.", "enabled_events");
  }
  const secret = world.ids.next("whsec");
  const endpoint: Endpoint = {
    id: world.ids.next("we"),
    created: world.clock.seconds(),
    url: requiredText(params, "url"),
    secrets: [secret],
    enabledEvents,
    apiVersion: text(params, "api_version") ?? null,
    payload: "snapshot",
    connect: flag(params, "connect") ?? false,
    livemode: space.livemode,
    status: "enabled",
    description: text(params, "description") ?? null,
    metadata: metadata(params),
  };
  world.endpoints.set(endpoint.id, endpoint);
  // Shown this once only, as at Stripe.
  return { ...shown(endpoint), secret };
}

function update(call: Call): Wire {
  const endpoint = find(call);
  endpoint.url = text(call.params, "url") ?? endpoint.url;
  endpoint.enabledEvents = texts(call.params, "enabled_events") ?? endpoint.enabledEvents;
  endpoint.metadata = metadata(call.params, endpoint.metadata);
  const disabled = flag(call.params, "disabled");
  if (disabled !== undefined) endpoint.status = disabled ? "disabled" : "enabled";
  return shown(endpoint);
}

function list(call: Call): Wire {
  const all = [...call.world.endpoints.values()].toReversed();
  const mine = all.filter((endpoint) => endpoint.livemode === call.space.livemode);
  return listObject(mine.map(shown), false, call.path);
}

const ROOT = "/v1/webhook_endpoints";

/** Endpoints of webhook endpoints. */
export const WEBHOOK_ENDPOINT_ROUTES: readonly Route[] = [
  { method: "GET", path: ROOT, handle: list },
  { method: "POST", path: ROOT, handle: create },
  { method: "GET", path: `${ROOT}/:id`, handle: (call) => shown(find(call)) },
  { method: "POST", path: `${ROOT}/:id`, handle: update },
  {
    method: "DELETE",
    path: `${ROOT}/:id`,
    handle: (call: Call): Wire => {
      const endpoint = find(call);
      call.world.endpoints.delete(endpoint.id);
      return { id: endpoint.id, object: "webhook_endpoint", deleted: true };
    },
  },
];
