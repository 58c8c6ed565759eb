import { wrongState } from "./errors.ts";
import type { ApiError } from "./errors.ts";
import type { Cause, ObjectRecord, PaymentIntentRecord, Wire } from "./records.ts";
import { relatedIn, render } from "./render.ts";
import type { Space } from "./space.ts";
import type { World } from "./world.ts";

/** One running request: where it works, who caused it, and the version that it speaks. */
export interface Job {
  readonly world: World;
  readonly space: Space;
  readonly cause: Cause;
  readonly version: string;
}

/** Stores an intent. */
export function putIntent(job: Job, intent: PaymentIntentRecord): PaymentIntentRecord {
  return job.space.intents.put(intent, job.world.clock.now());
}

/** An object in the shape of the request's version. */
export function shown(job: Job, record: ObjectRecord): Wire {
  return render(record, job.version, relatedIn(job.space, job.world.clock.seconds()));
}

/** 400 `payment_intent_unexpected_state`, with the intent as it is. */
export function unexpectedState(job: Job, intent: PaymentIntentRecord, verb: string): ApiError {
  return wrongState(
    `This PaymentIntent could not be ${verb} because it has a status of ${intent.status}.`,
    "payment_intent_unexpected_state",
    { payment_intent: shown(job, intent) },
  );
}
