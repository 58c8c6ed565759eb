/** Worker processes: started, given orders, killed. */
import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";

import type { FromWorker, Order, Setup } from "./worker-words.ts";

/** What a worker said about a request. */
export type Word = Exclude<FromWorker, { readonly say: "ready" }>;

/** Some worker processes, which take requests in turn. */
export interface Fleet {
  /** Ends with the first word about it: the provider has answered, or it is over. */
  readonly give: (order: Order) => Promise<Word>;
  /** Lets a request that stands at the provider's answer go on; ends when it is over. */
  readonly release: (request: string) => Promise<Word | null>;
  /** Kills every process, as a machine that loses power does, and starts others. */
  readonly restart: () => Promise<void>;
  readonly close: () => Promise<void>;
}

// A worker's start compiles the sources; its payment takes milliseconds.
const WAIT_MAX_MS = 60_000;
const WORKERS = 2;

interface Worker {
  readonly child: ChildProcess;
  /** Who waits for the next word about a request. */
  readonly waiting: Map<string, (word: Word) => void>;
}

/** How a worker process is started. */
export interface WorkerProgram {
  readonly env: Readonly<Record<string, string>>;
  /** The file that it runs, which serves a desk; default the laboratory's own. */
  readonly worker?: string;
}

/** Starts the workers. */
export async function startFleet(setup: Setup, program: WorkerProgram): Promise<Fleet> {
  const open = (): Promise<Worker[]> =>
    Promise.all(Array.from({ length: WORKERS }, () => startWorker(setup, program)));
  let workers = await open();
  let turn = 0;
  const held = new Map<string, Worker>();
  return {
    give: async (order) => {
      const worker = workers[turn % workers.length];
      turn += 1;
      if (worker === undefined) throw new Error("there is no worker");
      const word = await nextWord(worker, order.request, () => worker.child.send(order));
      if (word.say === "answered") held.set(order.request, worker);
      return word;
    },
    release: async (request) => {
      const worker = held.get(request);
      if (worker === undefined) return null;
      held.delete(request);
      return nextWord(worker, request, () => worker.child.send({ say: "release", request }));
    },
    restart: async () => {
      held.clear();
      await Promise.all(workers.map(kill));
      workers = await open();
    },
    close: async () => {
      await Promise.all(workers.map(kill));
      workers = [];
    },
  };
}

async function startWorker(setup: Setup, { env, worker }: WorkerProgram): Promise<Worker> {
  const here = fileURLToPath(import.meta.url);
  const file = worker ?? path.join(path.dirname(here), `worker${path.extname(here)}`);
  const extension = path.extname(file);
  const child = fork(file, [], {
    // From the sources as from the build, whatever runs us.
    execArgv: extension === ".ts" ? ["--import", "tsx"] : [],
    env: { ...env },
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  const waiting: Worker["waiting"] = new Map();
  let errors = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    errors = `${errors}${text}`.slice(-4_000);
  });
  await within(
    new Promise<void>((resolve, reject) => {
      child.once("exit", () => {
        reject(new Error(`a worker did not start:\n${errors}`));
      });
      child.on("message", (message: FromWorker) => {
        if (message.say === "ready") resolve();
        else takeWord(waiting, message);
      });
      child.send(setup);
    }),
    "a worker's start",
  );
  return { child, waiting };
}

function takeWord(waiting: Worker["waiting"], word: Word): void {
  const resolve = waiting.get(word.request);
  waiting.delete(word.request);
  resolve?.(word);
}

function nextWord(worker: Worker, request: string, ask: () => void): Promise<Word> {
  const word = new Promise<Word>((resolve) => worker.waiting.set(request, resolve));
  ask();
  return within(word, `a word about request ${request}`);
}

async function within<T>(work: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`waited ${String(WAIT_MAX_MS / 1_000)} s for ${what}`));
    }, WAIT_MAX_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function kill({ child }: Worker): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise<void>((resolve) => {
    child.once("exit", () => {
      resolve();
    });
  });
  child.kill("SIGKILL");
  await gone;
}
