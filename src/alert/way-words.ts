/** How ways out are called towards people, and what to do when one is out of order. */
interface WayWords {
  /** `the Slack hook`. */
  readonly name: string;
  readonly setting: string;
  readonly whenDead: string;
  readonly whenFailing: string;
}

const SLACK = {
  name: "Slack hook",
  whenFailing:
    "Check the way to hooks.slack.com; nothing is lost, the waiting alerts go out later.",
};

const WORDS: Readonly<Record<string, WayWords>> = {
  slack: {
    ...SLACK,
    setting: "SLACK_WEBHOOK_URL",
    whenDead:
      "Make a new incoming webhook in Slack and set SLACK_WEBHOOK_URL; the waiting alerts are sent then.",
  },
  slack_critical: {
    ...SLACK,
    setting: "SLACK_CRITICAL_WEBHOOK_URL",
    whenDead:
      "Make a new incoming webhook in Slack and set SLACK_CRITICAL_WEBHOOK_URL; the waiting alerts are sent then.",
  },
  webhook: {
    name: "webhook",
    setting: "WEBHOOK_URL",
    whenDead:
      "Set WEBHOOK_URL to an address that takes alerts and answers 2xx; the waiting ones are sent then.",
    whenFailing:
      "See why the program at WEBHOOK_URL does not answer 2xx; nothing is lost, it is asked again.",
  },
  pagerduty: {
    name: "PagerDuty key",
    setting: "PAGERDUTY_ROUTING_KEY",
    whenDead:
      "Set PAGERDUTY_ROUTING_KEY to the integration key of a service (Events API v2); the waiting alerts are sent then.",
    whenFailing:
      "Check the way to PagerDuty and its status page; nothing is lost, the waiting alerts go out later.",
  },
};

const LOG_ADVICE = "Alerts are not delivered at all: see the job deliver-alerts and the log.";
const LOG: WayWords = {
  name: "log",
  setting: "this process",
  whenDead: LOG_ADVICE,
  whenFailing: LOG_ADVICE,
};

/** The words for a channel. */
export function wayWords(channel: string): WayWords {
  return WORDS[channel] ?? LOG;
}
