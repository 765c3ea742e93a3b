import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { takeBackup } from '../../src/cli/backup/backup.ts'
import { createReport } from '../../src/cli/backup/report.ts'
import { newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { newHostedAgent } from '../support/hosted.ts'
import { callTurn } from '../support/hosted-rig.ts'
import { startModelServer } from '../support/model-server.ts'
import { type Release, readRelease } from '../support/release.ts'
import { spawnService } from '../support/service.ts'
import { endAll, temporaryDirectory } from '../support/teardown.ts'

/** `bun test/releases/record.ts <version>` stores what this version writes as `<version>.tgz`, for `upgrade.slow.test.ts`. */
async function record(version: string): Promise<void> {
  const model = startModelServer(callTurn(['request_input', { question: 'Which city?' }]))
  const service = await spawnService({ OPENAI_BASE_URL: model.url })
  const { api, workspaceKey, dataDir } = service
  const { agentId, agentKey } = await newAgent(api)
  const ingest = async (path: string, body: object) =>
    (await api('POST', `/api/ingest/v1/${path}`, body, { key: agentKey })).data
  const [ended, live] = [
    (await ingest('run/start', { agent_id: agentId, input: { n: 12_345 }, tags: ['a'] })).run_id,
    (await ingest('run/start', { agent_id: agentId, external_run_id: 'x' })).run_id,
  ]
  const task = { id: crypto.randomUUID(), name: 'look up', status: 'running', input: { q: 'é' } }
  for (const run_id of [ended, live]) {
    await ingest('tasks', { run_id, task: { ...task, id: crypto.randomUUID() } })
    const usage = { 'gen_ai.usage.input_tokens': 10, 'gen_ai.usage.output_tokens': 5, cost_usd: 0.25 }
    await ingest('events', { run_id, events: [{ id: 'first', type: 'note', level: 'warn', payload: { text: 'ok' } }] })
    await ingest('events', { run_id, events: [{ type: 'llm.call', payload: usage }] })
  }
  await ingest('run/complete', { run_id: ended, output: { done: true } })
  await api('POST', '/api/v1/queries', { name: 'runs', query: 'SELECT count() FROM runs' })
  const hosted = await newHostedAgent(service, { allow_input_requests: true })
  const { data } = await hosted.invoke({ input: { message: 'Book it.' }, start_session: true })
  const runs = { ended, live, waiting: data.run_id }

  const stored = 'SELECT count() AS events, max(seq) AS seq FROM events'
  let previous = ''
  const settled = async () => {
    const [row] = (await api('POST', '/api/v1/query', { query: stored })).data.rows
    const isSettled = previous === JSON.stringify(row) && row.events > 6
    previous = JSON.stringify(row)
    return isSettled && row
  }
  const { seq } = await eventually(settled, { intervalMs: 3_000 })
  const requestId = data.awaiting_input.request_id
  const answers = await readRelease(api, runs)
  const release: Release = { workspaceKey, agentKey, runs, requestId, lastSeq: Number(seq), answers }
  service.kill('SIGTERM')
  await service.exited

  const folder = await temporaryDirectory()
  await writeFile(join(folder, 'release.json'), JSON.stringify(release))
  await cp(join(import.meta.dir, '..', '..', 'sql'), join(folder, 'sql'), { recursive: true })
  const config = { dataDir, databaseUrl: undefined, clickhouseUrl: undefined }
  const report = createReport(process.stdout)
  await takeBackup({ config, folder: join(folder, 'backup'), isVerified: true, log: createLog('error'), report })
  await Bun.$`tar czf ${join(import.meta.dir, `${version}.tgz`)} -C ${folder} release.json sql backup`
}

await record(process.argv[2] ?? '').finally(endAll)
