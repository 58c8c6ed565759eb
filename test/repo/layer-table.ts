// Who may import whom. A new folder or package gets a row here, with its reason.

/** What the files of one folder may import from other folders. */
export interface Layer {
  /** Folders; "everything" is all but `sandbox`, `demo`, `jobs` and libraries, to be named. */
  readonly may: readonly string[] | "everything";
  /** Folders of which only types may be imported; the caller hands in the thing itself. */
  readonly types?: readonly string[];
  /** Further folders beside "everything". */
  readonly also?: readonly string[];
  readonly why: string;
}

/** Where something may be used: a folder (ends in a slash) or a file. */
export interface Place {
  readonly in: readonly string[];
  readonly why: string;
}

const SOURCES = ["sources/local", "sources/stripe", "sources/evm"] as const;

/** Rows by folder below `src`; `jobs` is the folder beside it. A folder may import itself. */
export const LAYERS: Readonly<Record<string, Layer>> = {
  core: { may: [], why: "Pure data and decisions: everything else leans on it." },
  config: { may: ["core"], why: "Turns the environment into settings, and knows nothing else." },
  store: {
    may: ["core"],
    types: ["scheduler"],
    why: "Plumbing between core values and tables; the shape of a job's counts is the job's.",
  },
  "sources/local": {
    may: ["core", "store"],
    why: "One outside system each: a source that knew another could not be taken out.",
  },
  "sources/stripe": {
    may: ["core", "store"],
    why: "One outside system each: a source that knew another could not be taken out.",
  },
  "sources/evm": {
    may: ["core", "store"],
    why: "One outside system each: a source that knew another could not be taken out.",
  },
  ingest: { may: ["core", "store", ...SOURCES], why: "Moves what the sources read to the mirror." },
  match: { may: ["core", "store"], why: "Sees facts, never the system that they came from." },
  detect: { may: ["core", "store"], why: "Sees facts, never the system that they came from." },
  incident: {
    may: ["core", "store", "detect", "alert"],
    why: "An incident and the alert that it causes are committed together.",
  },
  resolve: {
    may: ["core", "store"],
    types: SOURCES,
    why: "Decides from proof; who looks up the proof is handed in, so a test can hand in another.",
  },
  alert: { may: ["core", "store"], why: "Knows what a message says, not how it was found out." },
  explain: { may: ["core", "store"], why: "Shows what is stored; it finds out nothing new." },
  report: { may: ["core", "store"], why: "Shows what is stored; it finds out nothing new." },
  scheduler: { may: ["core", "store"], why: "Runs any job and knows none." },
  http: {
    may: ["core", "store", "ingest", "alert", "incident", "explain", "report"],
    types: ["scheduler"],
    why: "Takes webhooks in and shows pages; work is done by jobs, not by requests.",
  },
  doctor: { may: "everything", why: "Looks at every part from outside." },
  ledger: {
    may: ["core"],
    why: "The writer's side, a library of its own: shared code would make both sides share a bug.",
  },
  gateway: {
    may: ["core"],
    why: "The seller's side, a library of its own: it runs in a program that has no daemon.",
  },
  lab: {
    may: ["core", "store", "ledger", "sandbox"],
    why: "Runs the ledger for all to see, against the stand-in; the daemon has no part in it.",
  },
  sandbox: {
    may: ["core"],
    why: "Stands in for the outside: with code of the product in it, it would agree with any bug.",
  },
  demo: {
    may: "everything",
    also: ["sandbox", "jobs", "ledger"],
    why: "The product beside its stand-ins.",
  },
  daemon: { may: "everything", also: ["jobs"], why: "Puts the parts together." },
  cli: { may: "everything", also: ["jobs", "demo"], why: "Puts the parts together." },
  "bin.ts": { may: "everything", also: ["demo"], why: "Starts the command line." },
  jobs: {
    may: [
      ...["core", "store", "ingest", "match", "detect", "incident", "resolve", "alert"],
      ...["report", ...SOURCES],
    ],
    types: ["scheduler", "daemon", "config"],
    why: "Says when, calls one function that does what.",
  },
};

/** Where a package may be imported. `pg` has a second row: its types are free. */
export const PACKAGES: Readonly<Record<string, Place>> = {
  pg: {
    in: ["src/store/pool.ts", "src/store/embedded.ts", "src/sources/local/"],
    why: "Connections are opened at one place; the local source only quotes names with it.",
  },
  stripe: {
    in: [
      ...["src/sources/stripe/", "src/sandbox/", "src/demo/agent.ts"],
      ...["src/lab/desk.ts", "src/lab/real-ledger.ts"],
    ],
    why: "No other part knows the provider; agents of the demo and the lab are its customers.",
  },
  viem: {
    in: ["src/sources/evm/", "src/sandbox/chain/", "src/sources/local/challenge.ts"],
    why: "No other part knows how a chain is read; the marks of a row are hashes as the chain has them.",
  },
  express: { in: ["src/http/", "src/sandbox/"], why: "Only these two answer requests." },
  "@slack/webhook": { in: ["src/alert/slack.ts"], why: "One way out, so one place to fake." },
  "node-cron": { in: ["src/scheduler/"], why: "Jobs say when, the scheduler alone knows how." },
  "prom-client": { in: ["src/http/"], why: "Numbers are gathered where they are served." },
  zod: {
    in: [
      ...["src/config/", "src/http/", "src/sources/", "src/sandbox/"],
      ...["src/detect/load.ts", "src/detect/row.ts", "src/store/mirror-rows.ts"],
      "src/lab/schedule.ts",
    ],
    why: "Foreign data is checked at the edge; past it, types hold.",
  },
};

/** Packages whose types may be named anywhere. */
export const FREE_TYPES: readonly string[] = ["pg"];

/** Node's own modules that the pure folder may use. */
export const CORE_BUILTINS: readonly string[] = ["node:crypto"];

/** Where something of the machine may be read. */
export const AMBIENT: Readonly<Record<string, Place>> = {
  "process.env": {
    in: ["src/config/"],
    why: "Settings are checked as a whole at the start; take them as a parameter.",
  },
  "new Date()": {
    in: ["src/core/clock.ts", "src/sandbox/", "src/demo/"],
    why: "Time is a parameter (Clock), so that a test can set it; waits use performance.now().",
  },
  "Date.now()": {
    in: ["src/core/clock.ts", "src/sandbox/", "src/demo/"],
    why: "Time is a parameter (Clock), so that a test can set it; waits use performance.now().",
  },
};
