import type { ChildProcess } from "node:child_process";
import { constants } from "node:fs";
import { chown, open, readFile, unlink } from "node:fs/promises";
import { createServer } from "node:net";
import path from "node:path";

import type { Cluster } from "./embedded-cluster.ts";
import {
  postmasterPath,
  readPostmasterFile,
  servesFolder,
  spawnServer,
} from "./embedded-process.ts";

/** What the server printed when it last started, for the message of a failed start. */
export async function startLog(cluster: Cluster): Promise<string> {
  const text = await readFile(path.join(cluster.root, "start.log"), "utf8").catch(() => "");
  return text.trim() === "" ? "it ended at once, without a word" : text.trim();
}

/**
 * Starts the server of a cluster on the given port, else on the one that it had last time when
 * that is free, else on any free one. Does not wait until it answers.
 */
export async function spawnOnFreePort(
  cluster: Cluster,
  options: { readonly port?: number; readonly settings?: Readonly<Record<string, string>> },
): Promise<ChildProcess> {
  const portFile = path.join(cluster.root, "port");
  const remembered = Number(await readFile(portFile, "utf8").catch(() => "0"));
  const port = options.port ?? (await freePort(remembered));
  await writePort(portFile, port, cluster);
  const settings: Record<string, string> = {
    port: String(port),
    listen_addresses: "127.0.0.1",
    // No socket file: folders for those are shared with other servers and limited in length.
    unix_socket_directories: "",
    // One log file for each day of the week, each emptied when its day comes again.
    logging_collector: "on",
    log_filename: "postgresql-%a.log",
    log_rotation_age: "1d",
    log_rotation_size: "0",
    log_truncate_on_rotation: "on",
    ...options.settings,
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  return spawnServer({
    file: cluster.postgres,
    args: ["-D", cluster.data, ...flags],
    runAs: cluster.runAs,
    logFile: path.join(cluster.root, "start.log"),
  });
}

/** The wished port when it is free on the loopback, else one that the system picks. */
async function freePort(wished: number): Promise<number> {
  const valid = Number.isSafeInteger(wished) && wished > 0 && wished < 65_536;
  return (valid ? await tryPort(wished) : undefined) ?? (await tryPort(0)) ?? wished;
}

function tryPort(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => {
      resolve(undefined);
    });
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => {
      const address = server.address();
      server.close(() => {
        resolve(typeof address === "object" && address !== null ? address.port : undefined);
      });
    });
  });
}

/**
 * Removes the `postmaster.pid` of a dead server. PostgreSQL does so itself unless the number now
 * belongs to another process of the same user, as after a restart of a container. Its second lock
 * (shared memory) still refuses a folder whose children live on.
 */
export async function removeStaleFile(
  data: string,
  pid: number,
  log: (line: string) => void,
): Promise<void> {
  // Read again right before: a server may have started and written its own file meanwhile.
  const now = await readPostmasterFile(data);
  if (now?.pid !== pid || (await servesFolder(pid, data))) return;
  log(`removing postmaster.pid of process ${String(pid)}, which does not serve ${data}`);
  await unlink(postmasterPath(data)).catch(() => undefined);
}

/** The folder belongs to the server's user: a link that it planted must not be followed as root. */
async function writePort(file: string, port: number, cluster: Cluster): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
  const handle = await open(file, flags, 0o600);
  try {
    await handle.writeFile(`${String(port)}\n`);
  } finally {
    await handle.close();
  }
  if (cluster.runAs !== undefined) await chown(file, cluster.runAs.uid, cluster.runAs.gid);
}
