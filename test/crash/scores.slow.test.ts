import { expect, test } from 'bun:test'
import { newAgent } from '../support/api.ts'
import { LiveStream } from '../support/feeds.ts'
import { freePort, spawnService } from '../support/service.ts'

const KILLS = 4
const CLIENTS = 3
const PER_CALL = 20

test('an acknowledged score is there once, however often the service is killed and the call repeated', async () => {
  const PORT = String(freePort())
  const start = (more: Record<string, string> = {}) => spawnService({ PORT, LOG_LEVEL: 'silent', ...more })
  let service = await start()
  const { api, workspaceKey, dataDir } = service
  const { agentId, agentKey } = await newAgent(api)
  const { run_id } = (await api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, { key: agentKey })).data
  let isOver = false
  const acknowledged: string[] = []
  let repeats = 0
  const client = async (name: number) => {
    for (let call = 0; !isOver; call++) {
      const ids = Array.from({ length: PER_CALL }, (_, n) => `${name}-${call}-${n}`)
      const scores = ids.map((id) => ({ id, run_id, name: 'quality', value: call }))
      for (;;) {
        const answer = await api('POST', '/api/ingest/v1/scores', { scores }, { key: agentKey }).catch(() => undefined)
        if (answer?.status === 200) break
        repeats++
        await Bun.sleep(20)
      }
      acknowledged.push(...ids)
    }
  }
  const clients = Array.from({ length: CLIENTS }, (_, name) => client(name))
  for (let kill = 0; kill < KILLS; kill++) {
    await Bun.sleep(250)
    service.kill('SIGKILL')
    await service.exited
    service = await start({ DATA_DIR: dataDir, BOOTSTRAP_WORKSPACE_KEY: workspaceKey })
  }
  isOver = true
  await Promise.all(clients)
  expect(repeats).toBeGreaterThan(0)

  const feed = await LiveStream.open(service, '/api/v1/stream?kind=score&after=0')
  const last = await api('POST', '/api/ingest/v1/scores', { scores: [{ id: 'last', run_id, name: 'n', value: 1 }] })
  await feed.until(() => feed.text.includes('"id":"last"'))
  const sent = feed.items.map((item) => (item as unknown as { score: { id: string } }).score.id)
  await feed.close()
  expect(sent.filter((id) => id !== 'last').sort()).toEqual(acknowledged.toSorted())
  const query = 'select count() as scores, uniqExact(score_id) as ids from scores'
  const { rows } = (await api('POST', '/api/v1/query', { query, wait_for: last.data.last_seq })).data
  expect(rows).toEqual([{ scores: acknowledged.length + 1, ids: acknowledged.length + 1 }])
  service.kill('SIGTERM')
  expect(await service.exited).toBe(0)
})
