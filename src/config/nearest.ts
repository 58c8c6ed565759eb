// Beyond a third of the name, a near name is a coincidence and would mislead.
const DISTANCE_SHARE_MAX = 1 / 3;

/** The known name that `name` most likely meant; `null` when none is near. */
export function nearestName(name: string, known: readonly string[]): string | null {
  let best: { readonly known: string; readonly distance: number } | null = null;
  for (const candidate of known) {
    const distance = editDistance(plain(name), plain(candidate));
    if (best === null || distance < best.distance) best = { known: candidate, distance };
  }
  if (best === null) return null;
  const distanceMax = Math.max(1, Math.floor(name.length * DISTANCE_SHARE_MAX));
  return best.distance <= distanceMax ? best.known : null;
}

/** Spellings of one name in camelCase, snake_case and kebab-case count as equal. */
function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9.]/g, "");
}

/** Levenshtein distance; names are short, so the plain table is enough. */
function editDistance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= right.length; j += 1) {
      const swap = (row[j - 1] ?? 0) + (left[i - 1] === right[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, swap));
    }
    row = next;
  }
  return row[right.length] ?? 0;
}
