import { openTallyd } from "../daemon/tallyd.ts";
import type { Tallyd } from "../daemon/tallyd.ts";
import type { CommandContext } from "./command.ts";

/** Reads the settings, opens everything, and closes it after `work`. */
export async function withTallyd<T>(
  context: CommandContext,
  work: (tallyd: Tallyd) => Promise<T>,
): Promise<T> {
  const settings = await context.settings();
  const tallyd = await openTallyd(settings, { log: context.log, clock: context.clock });
  try {
    return await work(tallyd);
  } finally {
    await tallyd.close();
  }
}
