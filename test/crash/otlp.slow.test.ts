import { expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { COST_USD, exportsOf, type RecordedRun, recordedRun } from '../support/otel-runs.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { freePort, rowsInSql, spawnService } from '../support/service.ts'

const KILLS = 4
const CLIENTS = 3
const SPANS_PER_EXPORT = 3

interface Exporters {
  /** Runs whose spans are all acknowledged. */
  readonly runs: readonly RecordedRun[]
  readonly retries: number
  stop(): Promise<void>
}

/** Clients that retry each export until it is acknowledged, as OpenTelemetry's exporters do. */
function startExporters(url: string, key: string, random: Random): Exporters {
  const runs: RecordedRun[] = []
  let retries = 0
  let isOver = false
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/x-protobuf' }
  const send = async (data: Uint8Array) => {
    for (;;) {
      const options = { method: 'POST', headers, body: Uint8Array.from(data), signal: AbortSignal.timeout(5_000) }
      const response = await fetch(`${url}/otlp/v1/traces`, options).catch(() => undefined)
      const answer = await response?.bytes().catch(() => undefined)
      if (response?.status === 200 && answer !== undefined) return expect(answer).toHaveLength(0)
      if (response !== undefined && response.status !== 503 && !response.ok) {
        throw new Error(`${response.status} ${Buffer.from(answer ?? []).toString('latin1')}`)
      }
      retries++
      await Bun.sleep(20)
    }
  }
  const work = async () => {
    while (!isOver) {
      const run = recordedRun(random)
      for (const data of exportsOf(run.spans, SPANS_PER_EXPORT, 'crashing')) await send(data)
      runs.push(run)
    }
  }
  const working = Promise.all(Array.from({ length: CLIENTS }, work))
  return {
    runs,
    get retries() {
      return retries
    },
    async stop() {
      isOver = true
      await working
    },
  }
}

test('acknowledged spans are stored, and their tokens counted, exactly once while the service is killed and exports are retried', async () => {
  const random = seededRandom('otlp crash')
  const PORT = String(freePort())
  const env = {
    PORT,
    LOG_LEVEL: 'silent',
    RATE_LIMIT_INGEST_REQUESTS_PER_MINUTE: '0',
    RATE_LIMIT_EVENTS_PER_SECOND: '0',
  }
  let service = await spawnService(env)
  const { workspaceKey, dataDir, url } = service
  const exporters = startExporters(url, workspaceKey, random)
  for (let kill = 0; kill < KILLS; kill++) {
    const before = exporters.runs.length
    await eventually(() => exporters.runs.length > before)
    await Bun.sleep(random.int(0, 300))
    service.kill('SIGKILL')
    await service.exited
    service = await spawnService({ ...env, DATA_DIR: dataDir, BOOTSTRAP_WORKSPACE_KEY: workspaceKey })
  }
  await exporters.stop()
  const { runs, retries } = exporters
  expect(retries).toBeGreaterThan(0)

  const sql = (query: string) => rowsInSql(service.api, query)
  const spans = runs.reduce((sum, run) => sum + run.spans.length, 0)
  const modelCalls = runs.reduce((sum, run) => sum + run.modelCalls, 0)
  const expected = {
    runs: runs.length,
    failed: runs.filter(({ failed }) => failed).length,
    input_tokens: runs.reduce((sum, run) => sum + run.inputTokens, 0),
    output_tokens: runs.reduce((sum, run) => sum + run.outputTokens, 0),
    cost_usd: modelCalls * COST_USD,
  }
  await eventually(
    async () =>
      expect(
        await sql(`select count() as runs, countIf(status = 'failed') as failed, sum(input_tokens) as input_tokens,
          sum(output_tokens) as output_tokens, sum(cost_usd) as cost_usd from runs where status != 'running'`),
      ).toMatchObject([expected]),
    { intervalMs: 200 },
  )
  expect(
    await sql(`select count() as events, uniqExact(event_id) as ids, countIf(type = 'llm.call') as calls,
      (select count() from tasks where status != 'running') as tasks, (select count() from runs) as runs from events`),
  ).toMatchObject([{ events: spans, ids: spans, calls: modelCalls, tasks: spans, runs: runs.length }])
  service.kill('SIGTERM')
  expect(await service.exited).toBe(0)
})
