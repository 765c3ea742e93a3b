/**
 * A table that is looked up by a word from outside. A map, because every object also has `constructor`, `toString` and
 * `__proto__`.
 */
export function lookup<Value>(entries: Readonly<Record<string, Value>>): ReadonlyMap<string, Value> {
  return new Map(Object.entries(entries))
}
