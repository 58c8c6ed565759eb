import { loadSettings } from "../../src/config/load-settings.ts";
import type { Settings } from "../../src/core/settings.ts";

const noFile = (): never => {
  throw new Error("tests give no settings file");
};

/** Checked settings of a small set-up on stand-ins, with `overrides` on top. */
export function testSettings(
  overrides: Partial<Settings> = {},
  env: Readonly<Record<string, string>> = {},
): Settings {
  const settings = loadSettings({
    env: {
      STRIPE_API_KEY: "rk_test_0123456789abcdef",
      STRIPE_WEBHOOK_SECRET: "whsec_0123456789abcdef",
      ...env,
    },
    readFile: noFile,
  });
  return { ...settings, ...overrides };
}
