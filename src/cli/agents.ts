import type { Client } from './client.ts'

export interface Agent {
  readonly agent_id: string
  readonly name: string
}

const PAGE_SIZE = 200

/**
 * Lists the workspace's agents, page by page.
 *
 * @param filter further query parameters, such as `runtime_type=external`
 */
export async function* listAgents(client: Client, key: string, filter = ''): AsyncGenerator<readonly Agent[]> {
  let cursor: string | null = null
  do {
    const query = new URLSearchParams(filter)
    query.set('limit', String(PAGE_SIZE))
    if (cursor !== null) query.set('cursor', cursor)
    const page = (await client({ key, path: `/api/v1/agents?${query}` })) as {
      items: Agent[]
      next_cursor: string | null
    }
    yield page.items
    cursor = page.next_cursor
  } while (cursor !== null)
}
