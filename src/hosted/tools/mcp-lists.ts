import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import type { Clock } from '../../clock.ts'
import { BoundedMap } from '../../keys/bounded-map.ts'

/** How long a list is good for. */
const KEPT_MS = 60_000
const LISTS_MAX = 256

/** As the server describes them, secrets taken out. */
export type McpToolList = readonly Tool[]

interface Kept {
  readonly key: string
  readonly until: number
  readonly tools: Promise<McpToolList>
}

/**
 * What servers have listed, so that not every run asks anew, and runs that begin together ask once. A list is forgotten
 * after a minute, or as soon as its server says that it has changed.
 */
export class McpLists {
  private readonly lists = new BoundedMap<string, Kept>(LISTS_MAX)

  constructor(private readonly clock: Clock) {}

  /** @param ask called if no list is kept under the key; a failure of it is not kept */
  get(key: string, ask: () => Promise<McpToolList>): Promise<McpToolList> {
    const kept = this.lists.get(key)
    if (kept !== undefined && this.clock.now() < kept.until) return kept.tools
    const tools = ask()
    const list = { key, until: this.clock.now() + KEPT_MS, tools }
    this.lists.set(key, list)
    tools.catch(() => this.lists.deleteWhere((other) => other === list))
    return tools
  }

  forget(key: string): void {
    this.lists.deleteWhere((list) => list.key === key)
  }
}
