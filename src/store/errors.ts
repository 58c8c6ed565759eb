/**
 * Faults of the database base. Each carries a stable `code`, so that a caller can choose an exit
 * code without reading the sentence.
 */

/** The embedded PostgreSQL cannot be prepared, started, joined or stopped. */
export class EmbeddedError extends Error {
  readonly code = "embedded_postgres";
  override readonly name = "EmbeddedError";
}

/** A migration file is missing, edited after it landed, misnamed or refused by the server. */
export class MigrationError extends Error {
  readonly code = "migration";
  override readonly name = "MigrationError";
}

/** The server is older than the oldest PostgreSQL that tallyd supports. */
export class PostgresTooOldError extends Error {
  readonly code = "postgres_too_old";
  override readonly name = "PostgresTooOldError";
}

/** The schema was migrated by a newer tallyd than this one. */
export class SchemaNewerError extends Error {
  readonly code = "schema_newer";
  override readonly name = "SchemaNewerError";
  /** Newest version in the schema. */
  readonly current: number;
  /** Newest version that this tallyd knows. */
  readonly known: number;
  /** True when one of the unknown migrations is marked `--! breaking`. */
  readonly breaking: boolean;

  constructor(versions: { current: number; known: number; breaking: boolean }) {
    super(
      `the schema tallyd is at version ${String(versions.current)}, this tallyd knows versions ` +
        `up to ${String(versions.known)}${versions.breaking ? " and the newer ones break it" : ""}: ` +
        "run the newer tallyd, or restore the database from before its migration",
    );
    this.current = versions.current;
    this.known = versions.known;
    this.breaking = versions.breaking;
  }
}
