import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { type Api, newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import { childrenOf } from '../support/processes.ts'
import { type Random, seededRandom } from '../support/random.ts'
import { freePort, spawnService } from '../support/service.ts'
import { type Receiver, startReceiver } from '../support/webhooks.ts'
import { Reporting } from './reporting.ts'

/** `WEBHOOK_KILLS=50` for many. */
const KILLS = Number(process.env.WEBHOOK_KILLS ?? 3)
const CLIENTS = 2
const main = join(import.meta.dir, '..', 'support', 'webhook-service.ts')
const HANGING_MS = 10_000

/** Succeeds mostly; otherwise it fails, hangs, or answers after the service has given up. */
function unreliable(random: Random): Receiver {
  return startReceiver(async () => {
    const luck = random.next()
    if (luck < 0.1) return new Response('not now', { status: 500 })
    if (luck < 0.12) return new Response(null, { status: 429, headers: { 'retry-after': '0' } })
    if (luck < 0.14) await Bun.sleep(HANGING_MS)
    else if (luck < 0.16) await Bun.sleep(350)
    return undefined
  })
}

test('every delivery arrives, in order, while the service and Postgres are killed at random', async () => {
  const random = seededRandom('webhooks crash')
  const env = { PORT: String(freePort()), LOG_LEVEL: 'silent', EGRESS_ALLOW: '127.0.0.1' }
  let service = await spawnService(env, { main })
  const { api, workspaceKey, dataDir, url } = service
  const { agentId, agentKey } = await newAgent(api)
  const [byRun, strict] = [unreliable(random), unreliable(random)]
  await subscribe(api, byRun, { filter: { type: 'llm.call' } })
  await subscribe(api, strict, { order: 'strict' })
  const reporting = new Reporting({ url, agentId, agentKey, random, clients: CLIENTS })

  for (let kill = 0; kill < KILLS; kill++) {
    await Bun.sleep(random.int(200, 700))
    if (kill % 2 === 1) {
      for (const { pid, command } of childrenOf(service.pid))
        if (command.includes('postgres')) process.kill(pid, 'SIGKILL')
      continue
    }
    service.kill('SIGKILL')
    await service.exited
    service = await spawnService({ ...env, DATA_DIR: dataDir, BOOTSTRAP_WORKSPACE_KEY: workspaceKey }, { main })
  }
  await reporting.stop()
  const ended = [...reporting.runs].map(([runId, status]) => `${runId} run.${status}`)
  await eventually(() => {
    expect(new Set(strict.received.map(({ body }) => `${body.data.run_id} ${body.type}`))).toEqual(new Set(ended))
    expect(new Set(byRun.received.map(({ id }) => id)).size).toBe(modelCalls(reporting))
  })
  const seqs = positions(strict)
  expect(seqs).toEqual(seqs.toSorted((a, b) => a - b))
  for (const ofRun of Map.groupBy(byRun.received, ({ body }) => body.data.run_id).values()) {
    const calls = [...new Set(ofRun.map(({ body }) => body.data.event.payload.n))]
    expect(calls).toEqual(calls.toSorted((a, b) => a - b))
  }
  await everyDeliveryIsInSql(service.api, [byRun, strict])
  service.kill('SIGTERM')
  expect(await service.exited).toBe(0)
})

async function subscribe(api: Api, receiver: Receiver, more: object): Promise<void> {
  const { data } = await api('POST', '/api/v1/webhooks', { url: receiver.url, ...more })
  receiver.secret = data.secret
}

/** How many events of the reported ones the filter matches. */
function modelCalls({ events }: Reporting): number {
  return [...events.values()].reduce((sum, count) => sum + Math.ceil(count / 3), 0)
}

/** Where messages first arrived, as positions in the log. */
function positions({ received }: Receiver): number[] {
  return [...new Set(received.map(({ id }) => Number(id.slice(id.lastIndexOf('_') + 1))))]
}

async function everyDeliveryIsInSql(api: Api, receivers: readonly Receiver[]): Promise<void> {
  const ids = new Set(receivers.flatMap(({ received }) => received.map(({ id }) => id)))
  await eventually(async () => {
    const query = "select uniqExact(delivery_id) as ids from deliveries where status = 'succeeded'"
    const { data } = await api('POST', '/api/v1/query', { query })
    expect(data.rows[0].ids).toBe(ids.size)
  })
}
