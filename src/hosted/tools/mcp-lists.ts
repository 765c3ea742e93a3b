import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import { LRUCache } from 'lru-cache'
import type { Clock } from '../../base/clock.ts'

const TTL_MS = 60_000
const LISTS_MAX = 256

/** As the server describes them, with secrets redacted. */
export type McpToolList = readonly Tool[]

/**
 * Cache of the tool lists of MCP servers. Runs that start together share one request. A list is dropped after a minute,
 * or as soon as its server says that it has changed.
 */
export class McpLists {
  private readonly lists: LRUCache<string, Promise<McpToolList>>

  constructor(clock: Clock) {
    this.lists = new LRUCache({ max: LISTS_MAX, ttl: TTL_MS, ttlResolution: 0, perf: clock })
  }

  /** @param ask called if no list is cached under the key; a failure is not cached */
  get(key: string, ask: () => Promise<McpToolList>): Promise<McpToolList> {
    const cached = this.lists.get(key)
    if (cached !== undefined) return cached
    const tools = ask()
    this.lists.set(key, tools)
    tools.catch(() => {
      if (this.lists.peek(key) === tools) this.lists.delete(key)
    })
    return tools
  }

  forget(key: string): void {
    this.lists.delete(key)
  }
}

/**
 * The tools of an MCP server cannot be listed. The message is safe for the caller: it names the tool and the host, never
 * a secret.
 */
export class McpUnavailable extends Error {
  override readonly name = 'McpUnavailable'
}
