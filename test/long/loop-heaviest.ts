/** The cases that stopped the loop longest in a full run, by route: what the short form sends. */
export const HEAVIEST: ReadonlySet<string> = new Set([])
