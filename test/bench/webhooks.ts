import { eventually } from '../support/eventually.ts'
import type { Bench } from './parts.ts'
import { quiet } from './quiet.ts'
import { median, type Report, whole } from './report.ts'
import { type BenchService, startBenchService, startScript } from './servers.ts'

const IN_FLIGHT = 16
const MESSAGES = 4_000
const MANY = 20
const TARGET = 1_000
const POLL_MS = 5

/** Deliveries to receivers that answer at once, beside a loop that only posts the same bodies. */
export async function measureWebhooks({ report, rounds }: Bench): Promise<void> {
  const service = await startBenchService({ EGRESS_ALLOW: '127.0.0.1' })
  for (const endpoints of [1, MANY]) await measure(service, report, rounds, endpoints)
}

async function measure(service: BenchService, report: Report, rounds: number, endpoints: number): Promise<void> {
  const title = `webhooks: ${whole(MESSAGES)} deliveries to ${endpoints === 1 ? 'one endpoint' : `${endpoints} endpoints`}`
  report.heading(title)
  const { port } = await startScript('webhook-receiver.ts', [])
  const url = `http://127.0.0.1:${port}/`
  const received = async () => Number(await (await fetch(url)).text())
  const type = `bench.${endpoints}`
  for (let i = 0; i < endpoints; i++) await service.call('POST', '/api/v1/webhooks', { url, filter: { type } })
  const rates: number[] = []
  const bareRates: number[] = []
  for (let round = 0; round < rounds; round++) {
    await quiet(service)
    const before = await received()
    const startedMs = performance.now()
    await reportEvents(service, type, MESSAGES / endpoints)
    await eventually(async () => (await received()) >= before + MESSAGES, { intervalMs: POLL_MS })
    rates.push((MESSAGES * 1_000) / (performance.now() - startedMs))
    bareRates.push(await bareRate(url))
  }
  const [rate, bare] = [median(rates), median(bareRates)]
  report.line(`bare posts with ${IN_FLIGHT} in flight: ${whole(bare)}/s; ratio ${(rate / bare).toFixed(2)}`)
  report.target(`${title}: ${whole(rate)} deliveries/s, target ${whole(TARGET)}`, rate >= TARGET)
}

/** Reports events that each endpoint receives. Deliveries of a run are made one after the other, so all runs have some. */
async function reportEvents({ agents, call }: BenchService, type: string, count: number): Promise<void> {
  const runs = agents.flatMap(({ key, runIds }) => runIds.map((runId) => ({ key, runId })))
  const perRun = Math.ceil(count / runs.length)
  const calls = runs.map(({ key, runId }, i) => {
    const length = Math.max(0, Math.min(perRun, count - i * perRun))
    const events = Array.from({ length }, (_, n) => ({ type, payload: { n, text: 'x'.repeat(200) } }))
    return length === 0 ? undefined : call('POST', '/api/ingest/v1/events', { run_id: runId, events }, key)
  })
  await Promise.all(calls)
}

/** Posts per second of a loop that does nothing else. */
async function bareRate(url: string): Promise<number> {
  const body = JSON.stringify({ type: 'bench', timestamp: new Date().toISOString(), data: { text: 'x'.repeat(400) } })
  let left = MESSAGES
  const startedMs = performance.now()
  const post = async () => {
    while (left-- > 0) await (await fetch(url, { method: 'POST', body })).arrayBuffer()
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, post))
  return (MESSAGES * 1_000) / (performance.now() - startedMs)
}
