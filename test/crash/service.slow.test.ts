import { expect, test } from 'bun:test'
import { newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { childrenOf } from '../support/processes.ts'
import { seededRandom } from '../support/random.ts'
import { freePort, spawnService } from '../support/service.ts'
import { expectAcknowledged, Reporting } from './reporting.ts'

/** Enough for several kills of each process while clients report. `bun run test:long kills` has many more. */
const KILLS = 6
const CLIENTS = 3

test('loses and duplicates no acknowledged report while the service, ClickHouse and Postgres are killed at random', async () => {
  const random = seededRandom('service crash')
  const PORT = String(freePort())
  let service = await spawnService({ PORT, LOG_LEVEL: 'silent' })
  const { api, workspaceKey, dataDir, url } = service
  const { agentId, agentKey } = await newAgent(api)
  const reporting = new Reporting({ url, agentId, agentKey, random, clients: CLIENTS })

  for (let kill = 0; kill < KILLS; kill++) {
    await Bun.sleep(random.int(100, 700))
    const victim = (['service', 'clickhouse', 'postgres'] as const)[kill % 3]
    if (victim === 'service') {
      service.kill('SIGKILL')
      await service.exited
      service = await spawnService({
        PORT,
        DATA_DIR: dataDir,
        BOOTSTRAP_WORKSPACE_KEY: workspaceKey,
        LOG_LEVEL: 'silent',
      })
    } else {
      const name = victim === 'clickhouse' ? 'engine/server.ts' : 'postgres'
      for (const child of childrenOf(service.pid)) if (child.command.includes(name)) process.kill(child.pid, 'SIGKILL')
    }
  }
  await Bun.sleep(300)
  await reporting.stop()

  await eventually(() => service.api('GET', '/readyz').then(({ data }) => data?.status === 'ready'))
  await expectAcknowledged(service.api, agentId, reporting)
  service.kill('SIGTERM')
  expect(await service.exited).toBe(0)
})
