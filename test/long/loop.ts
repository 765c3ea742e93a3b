import { join } from 'node:path'
import { readDocument } from '../openapi/document.ts'
import { newAgent } from '../support/api.ts'
import { startModelServer } from '../support/model-server.ts'
import { OPERATOR_TOKEN, spawnService, UNLIMITED } from '../support/service.ts'
import { temporaryDirectory } from '../support/teardown.ts'
import { type Campaign, type CampaignResult, ServiceCampaign } from './campaign.ts'
import type { AnyLoopCase, LoopCase, LoopContext, LoopRequest } from './loop-case.ts'
import { documentedCases, type Operation, operationsOf } from './loop-documented.ts'
import { GUIDE_CASES } from './loop-guides.ts'
import { HEAVIEST } from './loop-heaviest.ts'
import { hostedCases } from './loop-hosted.ts'
import { ingestCases } from './loop-ingest.ts'
import { langfuseCases } from './loop-langfuse.ts'
import { MCP_CASES } from './loop-mcp.ts'
import { mcpAgentCases } from './loop-mcp-agents.ts'
import { OPENAI_TRACES_CASES } from './loop-openai-traces.ts'
import { OTLP_CASES } from './loop-otlp.ts'
import type { LoopReading } from './loop-probe.ts'
import { readCases } from './loop-reads.ts'
import { scoreCases } from './loop-scores.ts'
import { sqlCases } from './loop-sql.ts'

/**
 * What no call may exceed, in milliseconds of processor time as `loop-probe.ts` counts it: what a busy or slow machine adds is
 * left out there.
 */
const STOP_MAX_MS = 100
/**
 * A case that stopped the loop is repeated, and its shortest stop counts: one that it causes comes again, a garbage collection
 * of what earlier cases left does not, nor the misses of caches and pages that other processes cause. So is one that was
 * answered 503: a call on a slow machine may reach a limit of time.
 */
const ATTEMPTS_MAX = 8
const TIMEOUT_MS = 60_000
const PROGRESS_CASES = 50
const LOG_SHOWN = 1_000
/** The work of a call may go on after its response: it is over once the loop has been idle for two readings. */
const SETTLE_POLL_MS = 15
const SETTLE_POLLS_MAX = 400
const IDLE_SHARE = 0.4
/** Routes that stream the results of queries. */
const QUERIES = /^\/clickhouse\/|^\/api\/v1\/(query|queries\/[^/]+\/run)$/

/** No input that one call may send keeps the event loop for long: the worst of every route, at its largest size. */
export const loop: Campaign = {
  describe:
    `sends the worst of every route and measures how long the event loop stops: more than ${STOP_MAX_MS} ms of processor ` +
    'time are a failure (--short: the heaviest cases)',
  rounds: 1,
  shortRounds: 1,
  run: (options) => new LoopCampaign(options).run(),
}

interface Row {
  readonly route: string
  readonly name: string
  readonly sent: number
  readonly status: string
  readonly stopMs: number
}

class LoopCampaign extends ServiceCampaign {
  private readonly rows: Row[] = []
  private operations!: readonly Operation[]
  private agentKey!: string
  private probe!: string
  private readonly model = startModelServer()
  /** Found by making a request, which may be large. */
  private readonly routes = new Map<AnyLoopCase, string>()

  protected async start() {
    this.probe = join(await temporaryDirectory(), 'probe')
    const model = { OPENAI_API_KEY: 'sk-test', OPENAI_BASE_URL: this.model.url }
    const env = { LOG_LEVEL: 'error', LOOP_PROBE: this.probe, ...model, ...UNLIMITED }
    return spawnService(env, { preload: join(import.meta.dir, 'loop-probe.ts') })
  }

  protected async act(): Promise<CampaignResult['figures']> {
    const cases = await this.prepare()
    this.expectEveryRoute(cases)
    const chosen = this.choose(cases)
    for (const [index, each] of chosen.entries()) {
      await this.measure(each)
      if ((index + 1) % PROGRESS_CASES === 0) this.options.progress(`${index + 1} of ${chosen.length} cases`)
    }
    this.print()
    return {
      routes: new Set(this.rows.map(({ route }) => route)).size,
      cases: chosen.length,
      [`over ${STOP_MAX_MS} ms`]: this.rows.filter(({ stopMs }) => stopMs > STOP_MAX_MS).length,
      'longest stop, ms': Math.round(Math.max(...this.rows.map(({ stopMs }) => stopMs))),
    }
  }

  private async prepare(): Promise<readonly AnyLoopCase[]> {
    const { api } = this.service
    const { agentId, agentKey } = await newAgent(api)
    this.agentKey = agentKey
    const run = await api('POST', '/api/ingest/v1/run/start', { agent_id: agentId }, { key: agentKey })
    const { service, model } = this
    const context: LoopContext = { service, model, agentId, agentKey, runId: run.data.run_id }
    this.operations = operationsOf(await readDocument(service))
    return [
      ...(await readCases(context)),
      ...ingestCases(context),
      ...scoreCases(context),
      ...(await hostedCases(context)),
      ...(await sqlCases(context)),
      ...OTLP_CASES,
      ...OPENAI_TRACES_CASES,
      ...MCP_CASES,
      ...mcpAgentCases(context),
      ...GUIDE_CASES,
      ...langfuseCases(context),
      ...documentedCases(this.operations),
    ]
  }

  /** In the short form, the first case of each route and those that a full run found heaviest: the same each time. */
  private choose(cases: readonly AnyLoopCase[]): readonly AnyLoopCase[] {
    const { only, isShort } = this.options
    const titles = cases.map((each) => `${this.routeOf(each)}, ${each.name}`)
    for (const title of HEAVIEST) if (!titles.includes(title)) this.failures.add(`no such case: ${title}`)
    if (only !== undefined) return cases.filter((_, index) => titles[index]!.includes(only))
    if (!isShort) return cases
    const routes = new Set<string>()
    return cases.filter((each, index) => {
      const isFirst = !routes.has(this.routeOf(each))
      routes.add(this.routeOf(each))
      return isFirst || HEAVIEST.has(titles[index]!)
    })
  }

  private expectEveryRoute(cases: readonly AnyLoopCase[]): void {
    const covered = new Set(cases.map((each) => this.routeOf(each)))
    for (const { route } of this.operations) if (!covered.has(route)) this.failures.add(`no case for ${route}`)
  }

  private async measure(each: AnyLoopCase): Promise<void> {
    const route = this.routeOf(each)
    let best: Row | undefined
    for (let attempt = 1; attempt <= ATTEMPTS_MAX && (best === undefined || best.stopMs > STOP_MAX_MS); attempt++) {
      if ('prepare' in each) await each.prepare?.()
      await this.settle()
      await fetch('http://probe/begin', { unix: this.probe })
      const { sent, status } = await this.send(each).catch((error) => ({ sent: 0, status: String(error) }))
      const longestMs = await this.settle()
      const slowdown = await fetch('http://probe/end', { unix: this.probe })
      const stopMs = longestMs / ((await slowdown.json()) as number)
      if (status === 503 && !isExpected(each, status) && attempt < ATTEMPTS_MAX) continue
      const row = { route, name: each.name, sent, status: String(status), stopMs }
      if (best === undefined || row.stopMs < best.stopMs) best = row
      if (!isExpected(each, status)) this.failures.add(`${route}, ${each.name}: answered ${status}`)
    }
    this.rows.push(best!)
    if (best!.stopMs <= STOP_MAX_MS) return
    this.options.progress(lineOf(best!))
    this.failures.add(`${route}, ${each.name}: the loop stopped for ${Math.round(best!.stopMs)} ms`)
  }

  private async send(each: AnyLoopCase): Promise<{ sent: number; status: number | string }> {
    if ('run' in each) return each.run()
    const { method, path, headers, body } = each.request()
    const sentMs = performance.now()
    const response = await fetch(this.service.url + path, {
      method,
      headers: { authorization: `Bearer ${this.keyOf(path)}`, ...headers },
      ...(body.length > 0 && { body: body as BodyInit }),
      // The service may close the connection after a body that it did not read.
      keepalive: false,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    }).catch((error) => {
      // The time tells a timeout, and what the service has logged, at the level error, a lost engine from a lost connection.
      const ms = Math.round(performance.now() - sentMs)
      const logged = this.service.output().stderr.slice(-LOG_SHOWN) || 'nothing'
      throw new Error(`no status after ${ms} ms: ${error}; logged: ${logged}`)
    })
    const text = await response.text().catch((error) => {
      // As documented, a query that fails midway aborts the connection: at its limits, which a slow machine may reach.
      const mayEndEarly = each.status === 'any' && QUERIES.test(path)
      if (!mayEndEarly) throw new Error(`${response.status}, but its body ends with ${error}`)
      return ''
    })
    if (!isExpected(each, response.status))
      this.options.progress(`${each.name}: ${response.status} ${text.slice(0, 300)}`)
    return { sent: body.length, status: response.status }
  }

  /** Waits until the loop is idle. @returns the longest stop since the last call */
  private async settle(): Promise<number> {
    let longestMs = 0
    for (let idle = 0, polls = 0; idle < 2 && polls < SETTLE_POLLS_MAX; polls++) {
      await Bun.sleep(SETTLE_POLL_MS)
      const response = await fetch('http://probe/', { unix: this.probe })
      const reading = (await response.json()) as LoopReading
      longestMs = Math.max(longestMs, reading.longestMs)
      idle = reading.busy < IDLE_SHARE ? idle + 1 : 0
    }
    return longestMs
  }

  private keyOf(path: string): string {
    if (['/api/ingest/', '/otlp/', '/api/public/', '/openai/'].some((prefix) => path.startsWith(prefix)))
      return this.agentKey
    return path.startsWith('/api/v1/workspaces') ? OPERATOR_TOKEN : this.service.workspaceKey
  }

  private routeOf(each: AnyLoopCase): string {
    const known = each.route ?? this.routes.get(each)
    if (known !== undefined) return known
    const route = routeOf((each as LoopCase).request(), this.operations)
    this.routes.set(each, route)
    return route
  }

  private print(): void {
    const { progress } = this.options
    progress('stop, ms        bytes  status  route, case')
    for (const row of this.rows.toSorted((a, b) => b.stopMs - a.stopMs)) progress(lineOf(row))
  }
}

function lineOf({ route, name, sent, status, stopMs }: Row): string {
  return `${stopMs.toFixed(1).padStart(8)} ${sent.toLocaleString('en').padStart(12)} ${status.padStart(7)}  ${route}, ${name}`
}

function isExpected(each: AnyLoopCase, status: number | string): boolean {
  if (each.status === 'any') return Number(status) < 500 || status === 503
  return each.status === undefined ? Number(status) < 300 : status === each.status
}

/** The operation of the document that a request calls; otherwise its method and path. */
function routeOf({ method, path }: LoopRequest, operations: readonly Operation[]): string {
  const [pathname] = path.split('?')
  const exact = `${method} ${pathname}`
  // As the service does, whichever was declared first.
  if (operations.some(({ route }) => route === exact)) return exact
  return operations.find((each) => each.method === method && each.pattern.test(pathname!))?.route ?? exact
}
