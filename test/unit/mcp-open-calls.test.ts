import { describe, expect, test } from 'bun:test'
import { OpenCalls } from '../../src/doors/mcp/open-calls.ts'
import type { CloseReason } from '../../src/feeds/live/connections.ts'
import type { Caller } from '../../src/tenants/keys/schema.ts'

/** The open calls of the MCP server: limits, and their end with the key. */

const never = new AbortController().signal

function newCalls(limits: { perKey: number; perWorkspace: number }) {
  const ends = new Set<(reason: CloseReason) => void>()
  const calls = new OpenCalls({
    ring: { authenticateFeed: (key) => Promise.resolve({ credential: key } as never) },
    connections: {
      hold: async ({ end }) => {
        ends.add(end)
        return () => void ends.delete(end)
      },
    },
    limits,
  })
  const open = (keyId: string, workspaceId: string, signal = never) =>
    calls.open({ keyId, workspaceId } as Caller, keyId, signal)
  return { open, ends }
}

describe('open calls', () => {
  test('are limited per key and per workspace, and make room when they are closed', async () => {
    const { open } = newCalls({ perKey: 2, perWorkspace: 3 })
    const [first] = [await open('a', 'w'), await open('a', 'w')]
    expect(open('a', 'w')).rejects.toThrow('this key has 2 open calls')
    await open('b', 'w')
    expect(open('b', 'w')).rejects.toThrow('this workspace has 3 open calls')
    await open('c', 'other')
    first.close()
    first.close()
    await open('a', 'w')
    expect(open('a', 'w')).rejects.toThrow('this key has 2 open calls')
  })

  test('end with the key, but not when its state is unknown for a moment', async () => {
    const { open, ends } = newCalls({ perKey: 2, perWorkspace: 2 })
    const call = await open('a', 'w')
    for (const end of ends) end('unavailable')
    expect(call.signal.aborted).toBe(false)
    for (const end of ends) end('key_invalid')
    expect(call.signal.aborted).toBe(true)
    expect(await call.ended).toMatchObject({ code: 'UNAUTHENTICATED' })
    call.close()
    expect(ends.size).toBe(0)
  })

  test('end when their client disconnects', async () => {
    const { open } = newCalls({ perKey: 2, perWorkspace: 2 })
    const client = new AbortController()
    const call = await open('a', 'w', client.signal)
    client.abort()
    expect(call.signal.aborted).toBe(true)
    expect(await call.ended).toBeNull()
    expect((await open('a', 'w', AbortSignal.abort())).signal.aborted).toBe(true)
  })
})
