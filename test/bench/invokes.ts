import { compare } from './compare.ts'
import { measurePaused } from './invoke-paused.ts'
import type { Streamed, StreamPlan } from './invoke-streams.ts'
import { runLoad, runScript, type WireRequest } from './load.ts'
import type { Bench } from './parts.ts'
import { startPeer } from './peer.ts'
import { alternate, quiet } from './quiet.ts'
import { median, ms, percentile, whole } from './report.ts'
import { type BenchService, startBenchService, startScript } from './servers.ts'

const PROMPT = 'You help customers of a parcel service. Be brief.'
const MESSAGE = 'Where is my parcel?'
const FIRST_TOKENS = 200
const STREAMS = 500
/** Each stream is what a fast model writes in a few seconds. */
const TICKER = { count: 100, intervalMs: 50 }
const SPREAD_MS = 2_000
const PEER_CALLERS = 32
const TARGETS = { overheadMs: 3, firstTokenMs: 3, lagMs: 50, stopMs: 50, peer: 1.5 }

/** The overhead of hosted agents over their model, which answers at once. */
export async function measureInvokes({ report, rounds, seconds }: Bench): Promise<void> {
  const { port: modelPort } = await startScript('invoke-model.ts', [])
  const modelUrl = `http://127.0.0.1:${modelPort}/v1`
  const service = await startBenchService({ OPENAI_BASE_URL: modelUrl })
  const bench: InvokeBench = { service, modelPort, modelUrl, report, rounds, seconds }
  await overhead(bench)
  await firstToken(bench)
  await manyStreams(bench)
  await besidesPeer(bench)
  await measurePaused(modelUrl, report)
}

interface InvokeBench extends Pick<Bench, 'service' | 'report' | 'rounds' | 'seconds'> {
  readonly modelPort: number
  readonly modelUrl: string
}

/** One caller at a time, alternating with the same caller at the model itself. */
async function overhead(bench: InvokeBench): Promise<void> {
  const { service, modelPort, report, seconds } = bench
  report.heading('invokes: one caller, one step, and the same request to the model itself')
  const ours = { port: service.port, connections: 1, seconds, requests: [await invoking(service, 'instant')] }
  const direct = { port: modelPort, connections: 1, seconds, requests: [asking('instant', false)] }
  const pairs = await alternate(
    bench,
    () => runLoad(direct),
    () => runLoad(ours),
  )
  const failed = pairs.find(([, invoke]) => invoke.firstFailure !== null)?.[1].firstFailure
  if (failed !== undefined) report.line(`FAILED, the first: ${failed}`)
  const of = (figure: 'p50' | 'p99') => median(pairs.map(([model, invoke]) => invoke[figure] - model[figure]))
  report.line(`model    p50 ${ms(median(pairs.map(([{ p50 }]) => p50)))}`)
  report.line(`invoke   p50 ${ms(median(pairs.map(([, { p50 }]) => p50)))}`)
  const text = `overhead of an invoke: p50 ${ms(of('p50'))}, p99 ${ms(of('p99'))}, target p50 at most ${TARGETS.overheadMs} ms`
  report.target(text, of('p50') <= TARGETS.overheadMs)
}

/** From the model sending a token to the caller receiving it; one caller at a time, alternating with one at the model. */
async function firstToken(bench: InvokeBench): Promise<void> {
  const { service, modelPort, report } = bench
  report.heading('invokes: the first token of a stream')
  const shape = { connections: 1, spreadMs: 0, streams: FIRST_TOKENS }
  const ours = { ...shape, port: service.port, ...(await invoking(service, 'instant', { stream: true })) }
  const direct = { ...shape, port: modelPort, ...asking('instant', true) }
  const pairs = await alternate(
    bench,
    () => stream(direct),
    () => stream(ours),
  )
  const [past, through] = [pairs.flatMap(([model]) => model.first), pairs.flatMap(([, invoked]) => invoked.first)]
  const [p50, p99] = [percentile(through, 0.5), percentile(through, 0.99)]
  report.line(`model    p50 ${ms(percentile(past, 0.5))}, p99 ${ms(percentile(past, 0.99))} after it was sent`)
  report.target(
    `first token: p50 ${ms(p50)}, p99 ${ms(p99)} after the model sent it, target p50 at most ${TARGETS.firstTokenMs} ms`,
    p50 <= TARGETS.firstTokenMs,
  )
}

/** Runs that start within some seconds and stream concurrently; then the same started all at once. */
async function manyStreams({ service, report, rounds }: InvokeBench): Promise<void> {
  report.heading(`invokes: ${STREAMS} concurrent streaming runs, ${1000 / TICKER.intervalMs} tokens a second each`)
  const model = `ticker-${TICKER.count}x${TICKER.intervalMs}`
  const invoke = await invoking(service, model, { stream: true })
  const plan = { ...invoke, port: service.port, connections: STREAMS, streams: 1 }
  const spread: number[] = []
  for (let round = 0; round <= rounds; round++) {
    const { text, lagMs } = await lagOf(service, { ...plan, spreadMs: SPREAD_MS })
    if (round === 0) continue
    spread.push(lagMs)
    report.line(`started within ${ms(SPREAD_MS)}: ${text}`)
  }
  const stops: number[] = []
  for (let round = 0; round < rounds; round++) {
    const { text, stopMs } = await lagOf(service, { ...plan, spreadMs: 0 })
    stops.push(stopMs)
    report.line(`started at once: ${text}`)
  }
  const lagMs = median(spread)
  const text = `${STREAMS} streams: p99 of the loop's lag at most ${ms(lagMs)}, target ${TARGETS.lagMs} ms`
  report.target(text, lagMs <= TARGETS.lagMs)
  const stopMs = median(stops)
  const stopText = `${STREAMS} runs that begin at once: longest event loop delay at most ${ms(stopMs)}, target ${TARGETS.stopMs} ms`
  report.target(stopText, stopMs <= TARGETS.stopMs)
}

/** @returns the lag of the loop, in milliseconds: its p99, and its longest */
async function lagOf(
  service: BenchService,
  plan: StreamPlan,
): Promise<{ text: string; lagMs: number; stopMs: number }> {
  await quiet(service)
  const before = await loopLag(service)
  const startedAt = performance.now()
  const { all, first, mostAtOnce, failures, firstFailure } = await stream(plan)
  const tokensPerSecond = (all.length / (performance.now() - startedAt)) * 1000
  const after = await loopLag(service)
  const [lagMs, stopMs] = [percentileBetween(before, after, 0.99), percentileBetween(before, after, 1)]
  const text =
    `${mostAtOnce} at once, ${whole(tokensPerSecond)} tokens/s, p50 ${ms(percentile(all, 0.5))} and p99 ` +
    `${ms(percentile(all, 0.99))} after the model sent them, the first p99 ${ms(percentile(first, 0.99))}; ` +
    `lag p99 at most ${ms(lagMs)}, longest ${ms(stopMs)}${failures === 0 ? '' : `; ${failures} FAILED, the first: ${firstFailure}`}`
  return { text, lagMs, stopMs }
}

async function besidesPeer(bench: InvokeBench): Promise<void> {
  const { service, modelUrl, report, seconds } = bench
  const peer = await startPeer({ modelUrl, id: 'bench', instructions: PROMPT }, report.line)
  if (peer === null) return
  const shape = { connections: PEER_CALLERS, seconds }
  const generating = { path: '/api/agents/bench/generate', key: 'none', body: JSON.stringify({ messages: MESSAGE }) }
  await compare(bench, {
    name: `invokes: ${PEER_CALLERS} callers, compared with ${peer.name}, which stores nothing`,
    ...{ target: TARGETS.peer, eventsPerCall: 1 },
    ours: { ...shape, port: service.port, requests: [await invoking(service, 'instant')] },
    baseline: { name: 'peer', load: { ...shape, port: peer.port, requests: [generating] } },
  })
}

/** A request that invokes a new agent. */
export async function invoking(service: BenchService, model: string, options: object = {}): Promise<WireRequest> {
  const agent = { name: `bench ${model}`, runtime_type: 'hosted', model, prompt: PROMPT, allow_input_requests: true }
  const { agent_id: agentId } = await service.call('POST', '/api/v1/agents', agent)
  const body = JSON.stringify({ input: { message: MESSAGE }, ...options })
  return { path: `/api/v1/agents/${agentId}/invoke`, key: service.workspaceKey, body }
}

/** The request that the service then sends to the model. */
function asking(model: string, stream: boolean): WireRequest {
  const messages = [
    { role: 'system', content: PROMPT },
    { role: 'user', content: MESSAGE },
  ]
  return { path: '/v1/chat/completions', key: 'none', body: JSON.stringify({ model, messages, stream }) }
}

function stream(plan: StreamPlan): Promise<Streamed> {
  return runScript('invoke-streams.ts', plan) as Promise<Streamed>
}

/** Cumulative counts by the upper bounds of their buckets, in seconds. */
type Buckets = readonly (readonly [bound: number, count: number])[]

async function loopLag(service: BenchService): Promise<Buckets> {
  const text = await (await fetch(`http://127.0.0.1:${service.port}/metrics`)).text()
  const lines = text.matchAll(/^event_loop_lag_seconds_bucket\{le="([^"]+)"\} (\d+)$/gm)
  return [...lines].map(([, bound, count]) => [Number(bound!.replace('+Inf', 'Infinity')), Number(count)])
}

/** The percentile in milliseconds of the values counted in between. */
function percentileBetween(before: Buckets, after: Buckets, share: number): number {
  const counted = after.map(([bound, count], index) => [bound, count - before[index]![1]] as const)
  const enough = counted.at(-1)![1] * share
  return counted.find(([, count]) => count >= enough)![0] * 1000
}
