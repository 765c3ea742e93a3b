import { beforeAll, expect, test } from 'bun:test'
import { Client, type OutputFrame } from '../../src/client/node.ts'
import { eventually } from '../support/eventually.ts'
import { callTurn, type HostedRig, startHostedRig } from '../support/hosted-rig.ts'

/** Hosted agents through the client library (docs/client.md#hosted-agents). */

let rig: HostedRig
let client: Client
beforeAll(async () => {
  rig = await startHostedRig()
  client = new Client({ url: rig.service.url, key: rig.service.workspaceKey, flushAtExit: false })
})

const paying = () => [callTurn(['pay', { n: 7 }]), { text: ['pa', 'id'] }]
const payer = () => rig.agent(rig.service, paying(), { tools: [rig.tools.tool('pay', { requires_approval: true })] })

test('an invocation pauses for an approval, and a decision continues it', async () => {
  const { agentId } = await payer()
  const paused = await client.agents.invoke(agentId, { message: 'Pay.' })
  expect(paused.status).toBe('awaiting_approval')
  if (!('awaiting_approval' in paused)) throw new Error('no approval')
  const done = await client.approvals.approve(paused.awaiting_approval.approval_id, {
    comment: 'go on',
    editedInput: { n: 8 },
  })
  expect(done).toMatchObject({ run_id: paused.run_id, status: 'completed', output: { text: 'paid' } })
  expect(rig.tools.of('pay').at(-1)).toMatchObject({ input: { n: 8 } })
})

test('the versions of an agent are listed, read and restored; a run has the number of its own', async () => {
  const { agentId } = await rig.agent(rig.service, [{ text: 'hi' }], { prompt: 'one' })
  await client.agents.update(agentId, { prompt: 'two' })
  const { run_id } = await client.agents.invoke(agentId)
  const { agent_version } = await client.runs.get(run_id)
  expect((await client.agents.version(agentId, agent_version)).prompt).toBe('two')
  expect(await client.agents.restore(agentId, 1)).toMatchObject({ prompt: 'one', version: 3 })
  const listed = await Array.fromAsync(client.agents.versions(agentId, { limit: 2 }))
  expect(listed.map(({ version, changes, restored_from }) => [version, changes, restored_from])).toEqual([
    [3, ['prompt'], 1],
    [2, ['prompt'], null],
    [1, [], null],
  ])
})

test('an edit at a version changes that one alone', async () => {
  const { agentId } = await rig.agent(rig.service, [{ text: 'hi' }], { prompt: 'one' })
  const { run_id } = await client.agents.invoke(agentId)
  const { version } = await client.runs.get(run_id)
  const tagged = await client.runs.update(run_id, { tags: ['a'] }, { ifVersion: version })
  expect(tagged).toMatchObject({ tags: ['a'], version: version + 1 })
  const changed = { status: 409, reason: 'version_changed' }
  const late = client.runs.update(run_id, { tags: ['b'] }, { ifVersion: version })
  await expect(late).rejects.toMatchObject(changed)
  expect((await client.runs.update(run_id, { tags: ['c'] })).tags).toEqual(['c'])
  expect((await client.agents.update(agentId, { prompt: 'two' }, { ifVersion: 1 })).version).toBe(2)
  await expect(client.agents.archive(agentId, { ifVersion: 1 })).rejects.toMatchObject(changed)
  expect(await client.agents.archive(agentId, { ifVersion: 2 })).toMatchObject({ agent_id: agentId })
})

test('a rejection and an answer continue a run, too', async () => {
  const { agentId } = await payer()
  const paused = await client.agents.invoke(agentId, {})
  if (!('awaiting_approval' in paused)) throw new Error('no approval')
  const rejected = await client.approvals.reject(paused.awaiting_approval.approval_id, { comment: 'too much' })
  expect(rejected).toMatchObject({ status: 'completed' })

  const asks = [callTurn(['request_input', { question: 'Which?', options: ['a', 'b'] }]), { text: 'Thanks.' }]
  const curious = await rig.agent(rig.service, asks, { allow_input_requests: true })
  const asked = await client.agents.invoke(curious.agentId, {})
  if (!('awaiting_input' in asked)) throw new Error('no question')
  expect(asked.awaiting_input).toMatchObject({ question: 'Which?', options: ['a', 'b'] })
  const answered = await client.inputRequests.answer(asked.awaiting_input.request_id, 'a')
  expect(answered).toMatchObject({ status: 'completed', output: { text: 'Thanks.' } })
})

test('a stream goes on after a pause that was decided, and ends at one that was not', async () => {
  const { agentId } = await payer()
  const events: string[] = []
  let text = ''
  let runId = ''
  for await (const { event, data } of client.agents.invoke(agentId, {}, { stream: true })) {
    events.push(event)
    if (event === 'chunk') text += data.delta
    if (event === 'awaiting_approval') {
      runId = data.run_id
      await client.approvals.approve(data.approval_id, { background: true })
    }
  }
  expect(text).toBe('paid')
  expect([events[0], events.at(-1)]).toEqual(['awaiting_approval', 'done'])
  const again = await Array.fromAsync(client.runs.output(runId), ({ event }) => event)
  expect(again.at(-1)).toBe('done')

  const undecided = await Array.fromAsync(client.agents.invoke(agentId, {}, { stream: true }), ({ event }) => event)
  expect(undecided).toEqual(['awaiting_approval'])
})

test('a stream whose connection breaks continues after the last frame', async () => {
  const pieces = Array.from({ length: 10 }, (_, i) => `${i} `)
  let connections = 0
  // The model goes on when the client is back.
  const after = (sent: number) => (sent === 3 ? eventually(() => connections > 1) : undefined)
  const { agentId } = await rig.agent(rig.service, [{ text: pieces, after }])
  const cut = new Client({
    url: rig.service.url,
    key: rig.service.workspaceKey,
    flushAtExit: false,
    async fetch(url, init) {
      const response = await fetch(url, init)
      if (!url.includes('output-stream') || ++connections > 1) return response
      const reader = response.body!.getReader()
      let isCut = false
      const body = new ReadableStream({
        async pull(controller) {
          if (isCut) return controller.error(new Error('connection lost'))
          const { done, value } = await reader.read()
          if (done) return controller.close()
          controller.enqueue(value)
          isCut = new TextDecoder().decode(value).includes('event: chunk')
        },
      })
      return new Response(body, response)
    },
  })
  const frames: OutputFrame[] = await Array.fromAsync(cut.agents.invoke(agentId, {}, { stream: true }))
  expect(connections).toBeGreaterThan(1)
  expect(frames.map((frame) => (frame.event === 'chunk' ? frame.data.delta : '')).join('')).toBe(pieces.join(''))
  const { id } = frames.at(-1)!
  expect(await Array.fromAsync(cut.runs.output(frames[0]!.data.run_id, { after: id }))).toEqual([])
})
