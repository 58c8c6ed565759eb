/** Database that holds the migrated schema; nobody stays connected to it, so it can be copied. */
export const TEMPLATE_DATABASE = "tallyd_template_migrated";
