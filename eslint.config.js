import js from "@eslint/js";
import { defineConfig, globalIgnores } from "eslint/config";
import tseslint from "typescript-eslint";

// Every exception to the strict set is named here with its reason; there are none in the sources.
export default defineConfig(
  globalIgnores(["dist/", "coverage/", ".tallyd/"]),
  { linterOptions: { noInlineConfig: true, reportUnusedDisableDirectives: "error" } },
  js.configs.recommended,
  tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      // A new member of a union must show up at every place that decides by it.
      "@typescript-eslint/switch-exhaustiveness-check": [
        "error",
        { considerDefaultExhaustiveForUnions: true, requireDefaultForNonUnion: true },
      ],
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      // Methods of a deps object are passed on and called bare everywhere; none uses `this`.
      "@typescript-eslint/unbound-method": "off",
      // Counts and ports in a message are plain; objects and undefined stay forbidden.
      "@typescript-eslint/restrict-template-expressions": [
        "error",
        { allowNumber: true, allowBoolean: false, allowAny: false, allowNullish: false },
      ],
      eqeqeq: "error",
      "no-console": "error",
      "no-param-reassign": "error",
      "prefer-const": "error",
      "no-restricted-syntax": [
        "error",
        {
          selector: "ExportDefaultDeclaration",
          message: "Export by name: a default export has another name at every import.",
        },
        {
          selector: "ExportAllDeclaration",
          message: "No barrel files: import from the file that declares it.",
        },
        {
          selector: "TSEnumDeclaration",
          message: "Use a union of string literals: it needs no code at run time.",
        },
      ],
      "no-restricted-imports": [
        "error",
        {
          patterns: [
            {
              regex: "^\\.{1,2}/.*(?<!\\.ts|\\.json)$",
              message: "Write the extension: ./name.ts.",
            },
            { regex: "^(fs|path|os|crypto|http|net|url|util)(/|$)", message: "Write node: first." },
          ],
        },
      ],
    },
  },
  {
    // Tools look for a default export in these: configuration, vitest's setup and reporter.
    files: ["*.config.{js,ts}", "test/support/global-setup.ts", "test/support/closing-line.ts"],
    rules: { "no-restricted-syntax": "off" },
  },
  {
    // Plain JavaScript has no types to check.
    files: ["**/*.js"],
    extends: [tseslint.configs.disableTypeChecked],
  },
  {
    files: ["test/**/*.ts"],
    rules: {
      // A test says what it expects by failing; an index that is absent fails it just as well.
      "@typescript-eslint/no-non-null-assertion": "off",
      // Arrow shorthand for `() => expect(...)` and stubs that only satisfy a type.
      "@typescript-eslint/no-confusing-void-expression": "off",
      "@typescript-eslint/no-empty-function": "off",
      "@typescript-eslint/require-await": "off",
    },
  },
);
