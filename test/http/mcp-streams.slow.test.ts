import { describe, expect, test } from 'bun:test'
import { newTenant } from '../support/feeds.ts'
import { startMcpRig } from '../support/mcp-agents.ts'

/** Event streams of calls of the MCP server that end before their agent does. */

const VERSIONS = ['2025-11-25', '2026-07-28'] as const

/** The key must be forgotten within this time. */
const REVOKED_MS = 5_000

/** A call of an agent that hangs, once its client has been told that it goes on. */
async function openStream(rig: Awaited<ReturnType<typeof startMcpRig>>, version: (typeof VERSIONS)[number]) {
  const { api, workspaceKey } = await newTenant(rig.service)
  const agent = await rig.agent({ ...rig.service, api, workspaceKey }, [{ hangs: true }], {
    name: 'hangs',
    expose: ['mcp'],
  })
  const { data: key } = await api('POST', `/api/v1/keys`, { name: 'soon revoked' })
  const _meta = {
    progressToken: 'p',
    ...(version === '2026-07-28' && {
      'io.modelcontextprotocol/protocolVersion': version,
      'io.modelcontextprotocol/clientCapabilities': {},
    }),
  }
  const response = await fetch(`${rig.service.url}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key.key}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...{ 'mcp-protocol-version': version, 'mcp-method': 'tools/call', 'mcp-name': 'hangs' },
    },
    body: JSON.stringify({
      ...{ jsonrpc: '2.0', id: 7, method: 'tools/call' },
      params: { name: 'hangs', arguments: { input: 'x' }, _meta },
    }),
  })
  expect(response.headers.get('content-type')).toStartWith('text/event-stream')
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  const read = async () => {
    const { done, value = '' } = await reader.read()
    text += value
    return !done
  }
  while (!text.includes('notifications/progress')) expect(await read()).toBe(true)
  return {
    revoke: () => api('POST', `/api/v1/keys/${key.key_id}/revoke`, {}),
    /** The last message, once the stream has ended. */
    async untilEnd() {
      while (await read());
      return JSON.parse(
        text
          .match(/^data: (.+)$/gm)!
          .at(-1)!
          .slice('data: '.length),
      )
    },
    async endOfRun(status: string) {
      const { data } = await api('GET', `/api/v1/runs?agent_id=${agent.agentId}`)
      expect(data.items[0].status).toBe(status)
    },
  }
}

describe.each(VERSIONS)('an event stream of revision %s', (version) => {
  test('ends with an error when its key is revoked; the run goes on', async () => {
    const stream = await openStream(await startMcpRig(), version)
    await stream.revoke()
    const revokedMs = performance.now()
    expect(await stream.untilEnd()).toMatchObject({ id: 7, error: { data: { code: 'UNAUTHENTICATED' } } })
    expect(performance.now() - revokedMs).toBeLessThan(REVOKED_MS)
    await stream.endOfRun('running')
  })

  test('ends with the id of the run when the service stops', async () => {
    const rig = await startMcpRig()
    const stream = await openStream(rig, version)
    const stopped = rig.service.stop()
    expect(await stream.untilEnd()).toMatchObject({
      id: 7,
      result: { isError: true, content: [{ text: expect.stringContaining('goes on: read it with get_run') }] },
    })
    await stopped
  })
})
