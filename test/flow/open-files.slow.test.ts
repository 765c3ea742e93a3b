import { expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { withinOpenFiles } from '../../src/service/ops/open-files.ts'
import { newAgent } from '../support/api.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'
import { LiveSocket } from '../support/feeds.ts'
import { inParallel } from '../support/in-parallel.ts'
import { freshDatabase } from '../support/postgres.ts'
import { spawnService } from '../support/service.ts'

/** Feeds and the file descriptor limit of a process. */

const OPEN_FILES = 400
/** A quarter is reserved for everything else. */
const FEEDS = 300

test('feeds leave file descriptors for everything else: more are rejected, and the start logs one warning', async () => {
  const [database, columnar] = await Promise.all([freshDatabase(), freshColumnarDatabase()])
  const env = {
    DATABASE_URL: database.url,
    CLICKHOUSE_URL: columnar.url,
    FEED_CONNECTIONS: '50000',
  }
  const service = await spawnService(env, { openFiles: OPEN_FILES })
  const { stderr } = service.output()
  const warnings = stderr.split('\n').filter((line) => line.includes('FEED_CONNECTIONS'))
  expect(warnings.map((line) => JSON.parse(line))).toMatchObject([
    { level: 'warn', feed_connections: 50_000, open_files: OPEN_FILES, capped_to: FEEDS },
  ])
  const sockets = Array.from({ length: FEEDS }, (_, n) => n)
  await inParallel(sockets, () => LiveSocket.open(service), 10)
  const refused = await service.api('GET', '/api/v1/stream')
  expect([refused.status, refused.error?.code]).toEqual([503, 'UNAVAILABLE'])
  const { agentId, agentKey } = await newAgent(service.api)
  const started = await service.api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, { key: agentKey })
  expect(started.status).toBe(200)
  service.kill('SIGTERM')
  expect(await service.exited).toBe(0)
})

test('a limit with room for all feeds, or an unknown limit, changes nothing', () => {
  const lines: string[] = []
  const log = createLog('warn', (line) => lines.push(line))
  const limits = {
    connections: 750,
    connectionsGiven: true,
    connectionsPerWorkspace: 100,
    filtersPerWorkspace: 9,
    slowConsumerMs: 1,
    heartbeatMs: 1,
  }
  expect(withinOpenFiles(limits, 1_000, log)).toEqual(limits)
  expect(withinOpenFiles(limits, undefined, log)).toEqual(limits)
  expect(lines).toEqual([])
  expect(withinOpenFiles(limits, 100_000, log)).toEqual(limits)
  expect(withinOpenFiles({ ...limits, connections: 100_000 }, 100_000, log).connections).toBe(99_000)
  expect(withinOpenFiles(limits, 1, log).connections).toBe(1)
  expect(lines).toHaveLength(2)
  // A default gives no warning.
  expect(withinOpenFiles({ ...limits, connectionsGiven: false }, 1, log).connections).toBe(1)
  expect(lines).toHaveLength(2)
})
