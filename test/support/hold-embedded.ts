// Holds the embedded PostgreSQL of the folder in its first argument until it is killed. A program
// of its own, because what is tested is the sudden death of the process that started the server.
import { startEmbedded } from "../../src/store/embedded.ts";

const FOREVER_MS = 600_000;

const dataDir = process.argv[2];
if (dataDir === undefined) throw new Error("usage: hold-embedded.ts DATA_DIR");
await startEmbedded({ dataDir, log: () => undefined });
process.stdout.write("held\n");
setTimeout(() => undefined, FOREVER_MS);
