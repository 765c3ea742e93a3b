import { chromium, type DashboardPage, openDashboard } from '../browser/dashboard-page.ts'
import { eventually } from '../support/eventually.ts'
import { newReporter, type Reporter } from '../support/feeds.ts'
import type { Random } from '../support/random.ts'
import { spawnService } from '../support/service.ts'
import { type Campaign, type CampaignResult, ServiceCampaign } from './campaign.ts'

/** The events of the run that is opened. */
const RUN_EVENTS = 50_000
const EVENTS_PER_CALL = 1_000
const ROW_HEIGHT_PX = 30
/** The rate of the tail, and how much of it each call reports. */
const TAIL_EVENTS_PER_SECOND = 5_000
const TAIL_EVENTS_PER_CALL = 250
const SCROLL_MS = 4_000
const SCROLL_PX_PER_FRAME = 400
const SAMPLE_MS = 10_000
/** The first page of a fresh tab compiles, and its lists fill up. */
const WARM_UP_SHARE = 0.1
/** The allowed growth of the page's memory after the warm-up. */
const GROWTH_MAX = 1.5

/** Measures the dashboard in a real browser: a run of many events, and the live tail of a busy workspace. */
export const dashboard: Campaign = {
  describe: 'opens and scrolls a run of 50,000 events in a browser, and follows 5,000 events/s live',
  rounds: 5,
  shortRounds: 1,
  minutes: 10,
  shortMinutes: 0.2,
  async run(options) {
    if (chromium === null) return { figures: { skipped: 'there is no Chromium on this machine' }, failures: [] }
    return new DashboardCampaign(options).run()
  },
}

interface Frames {
  readonly perSecond: number
  /** The longest time without one. */
  readonly longestMs: number
}

interface Sample extends Frames {
  readonly heapMB: number
}

class DashboardCampaign extends ServiceCampaign {
  private page!: DashboardPage
  private reporter!: Reporter

  protected start() {
    return spawnService({ LOG_LEVEL: 'warn' })
  }

  protected async act(): Promise<CampaignResult['figures']> {
    const { rounds, minutes, random } = this.options
    this.reporter = await newReporter(this.service.api)
    const runId = await this.reporter.start()
    await this.reportRun(runId, random)
    this.page = await openDashboard(this.service.url)
    await this.page.signIn(this.service.workspaceKey)
    await this.page.shows('.waiting-now', 'Nothing waits')
    const opened = await this.openings(runId, rounds)
    const scrolled = [await this.scroll('.event-rows'), await this.scroll('.waterfall-rows')]
    const samples = await this.tail(minutes * 60_000)
    const [events, timeline] = scrolled.map(framesText)
    return {
      ...opened,
      'scrolling the events': events!,
      'scrolling the timeline': timeline!,
      ...tailFigures(samples),
    }
  }

  /** A run as an agent reports it: calls of models and tools, tasks, and logs. */
  private async reportRun(runId: string, random: Random): Promise<void> {
    const startedAt = Date.now() - RUN_EVENTS * 20
    for (let first = 0; first < RUN_EVENTS; first += EVENTS_PER_CALL) {
      const events = Array.from({ length: EVENTS_PER_CALL }, (_, i) => ({
        ...eventOf(first + i, random),
        occurred_at: new Date(startedAt + (first + i) * 20).toISOString(),
      }))
      await this.reporter.events(runId, events)
      await this.reporter.task(runId, { name: `step ${first / EVENTS_PER_CALL}`, status: 'completed' })
    }
    await this.reporter.end(runId)
    await eventually(async () => {
      const query = { query: 'SELECT count() AS n FROM events WHERE run_id = {run:UUID}', params: { run: runId } }
      const { data } = await this.service.api('POST', '/api/v1/query', query)
      return Number(data?.rows?.[0]?.n) >= RUN_EVENTS
    })
  }

  /** Opens the run from the list of runs, and as a fresh page. */
  private async openings(runId: string, rounds: number): Promise<Record<string, string>> {
    const { page } = this
    const opened: Opening[] = []
    const loaded: Opening[] = []
    for (let round = 0; round < rounds; round++) {
      await page.go('#/runs')
      await page.until(`document.querySelector('.run-list tbody tr')`)
      opened.push(await page.evaluate<Opening>(openingOf(`location.hash = '#/runs/${runId}?tab=events'`)))
      await page.go('#/runs')
      const { identifier } = await page.send<{ identifier: string }>('Page.addScriptToEvaluateOnNewDocument', {
        source: `window.opening = ${openingOf('')}`,
      })
      await page.open(`${this.service.url}/?round=${round}#/runs/${runId}?tab=events`)
      loaded.push(await page.evaluate<Opening>('window.opening'))
      await page.send('Page.removeScriptToEvaluateOnNewDocument', { identifier })
    }
    return { 'from the list of runs': openingText(opened), 'as a fresh page': openingText(loaded) }
  }

  private scroll(selector: string): Promise<Frames> {
    return this.page.evaluate<Frames>(
      framesOf(SCROLL_MS, `document.querySelector('${selector}').scrollTop += ${SCROLL_PX_PER_FRAME}`),
    )
  }

  private async heapMB(): Promise<number> {
    await this.page.send('HeapProfiler.collectGarbage')
    return (await this.page.send<{ usedSize: number }>('Runtime.getHeapUsage')).usedSize / 1e6
  }

  private async tail(milliseconds: number): Promise<Sample[]> {
    const { options } = this
    // Browsers keep earlier pages of a tab in memory.
    const page = await this.page.newTab(`${this.service.url}/#/live`)
    await page.shows('.tail-state', 'Live')
    await this.page.close()
    this.page = page
    const runId = await this.reporter.start()
    const startedAt = performance.now()
    const isOver = () => performance.now() - startedAt >= milliseconds
    let sent = 0
    const send = async () => {
      while (!isOver()) {
        const wait = startedAt + (sent / TAIL_EVENTS_PER_SECOND) * 1_000 - performance.now()
        if (wait > 0) await Bun.sleep(wait)
        await this.reporter.events(
          runId,
          Array.from({ length: TAIL_EVENTS_PER_CALL }, (_, i) => eventOf(sent + i, options.random)),
        )
        sent += TAIL_EVENTS_PER_CALL
      }
    }
    const samples: Sample[] = []
    const watch = async () => {
      while (!isOver()) {
        const frames = await page.evaluate<Frames>(framesOf(Math.min(SAMPLE_MS, milliseconds / 2), ''))
        const heapMB = await this.heapMB()
        samples.push({ ...frames, heapMB })
        const seconds = (performance.now() - startedAt) / 1_000
        options.progress(
          `${Math.round(seconds)} s: ${framesText(frames)}, heap ${heapMB.toFixed(1)} MB, ${Math.round(sent / seconds)} events/s sent; ${await page.text('.tail-state')}`,
        )
      }
    }
    await Promise.all([send(), watch()])
    // Besides the events, the tail has the changes of the run.
    const seen = `Number(/([0-9,]+) since/.exec(document.querySelector('.tail-state').textContent)[1].replaceAll(',', ''))`
    await page.until(`${seen} >= ${sent}`).catch((error) => this.failures.add(`the tail has missed activity: ${error}`))
    const settled = samples.slice(Math.ceil(samples.length * WARM_UP_SHARE))
    const growth = (samples.at(-1)?.heapMB ?? 0) / (settled[0]?.heapMB ?? 1)
    if (growth > GROWTH_MAX) this.failures.add(`the page's memory has grown to ${growth.toFixed(2)} of what it was`)
    return samples
  }
}

/** Milliseconds from the navigation. */
interface Opening {
  /** The first rows are there. */
  readonly first: number
  /** The list has all events. */
  readonly all: number
  /** The timeline is there. */
  readonly timeline: number
}

/** A script that starts a navigation and reports what is shown when. */
function openingOf(navigate: string): string {
  return `new Promise((resolve) => {
    const start = ${navigate === '' ? '0' : 'performance.now()'}
    ${navigate}
    const shown = {}
    const look = () => {
      const at = performance.now() - start
      const space = document.querySelector('.event-rows .virtual-space')
      if (document.querySelector('.event-row')) shown.first ??= at
      if (document.querySelector('.span-row:not(.kind-run)')) shown.timeline ??= at
      if (space && space.offsetHeight === ${RUN_EVENTS * ROW_HEIGHT_PX}) shown.all ??= at
      if (Object.keys(shown).length === 3) resolve(shown)
      else requestAnimationFrame(look)
    }
    requestAnimationFrame(look)
  })`
}

/** A script that counts frames, and does something in each. */
function framesOf(milliseconds: number, each: string): string {
  return `new Promise((resolve) => {
    const start = performance.now()
    let frames = 0
    let last = start
    let longestMs = 0
    const frame = () => {
      const now = performance.now()
      longestMs = Math.max(longestMs, now - last)
      last = now
      frames++
      ${each}
      if (now - start > ${milliseconds}) resolve({ perSecond: frames / ((now - start) / 1000), longestMs })
      else requestAnimationFrame(frame)
    }
    requestAnimationFrame(frame)
  })`
}

const TYPES = ['llm.call', 'tool.call.started', 'tool.call.finished', 'log', 'step'] as const

/** A call of a model, a call of a tool, a log and a step in turn. */
function eventOf(
  n: number,
  random: Random,
): { readonly type: string; readonly level: string; readonly payload: object } {
  const type = TYPES[n % TYPES.length]!
  const level = random.next() < 0.02 ? 'error' : random.next() < 0.05 ? 'warn' : 'info'
  const text = 'The customer asks for the state of the order. '.repeat(random.int(1, 6))
  if (type === 'llm.call') {
    const usage = {
      'gen_ai.usage.input_tokens': random.int(100, 4_000),
      'gen_ai.usage.output_tokens': random.int(10, 400),
    }
    return { type, level, payload: { 'gen_ai.request.model': 'gpt-5-mini', ...usage, latency_ms: 60, output: text, n } }
  }
  if (type.startsWith('tool.')) {
    const call = { tool: 'search_orders', tool_call_id: `call ${Math.floor(n / TYPES.length)}` }
    return {
      type,
      level,
      payload: { ...call, ...(type === 'tool.call.finished' && { latency_ms: 20, result: text }), n },
    }
  }
  return { type, level, payload: { message: text, n } }
}

function openingText(openings: readonly Opening[]): string {
  const median = (name: keyof Opening) =>
    Math.round(openings.map((each) => each[name]).toSorted((a, b) => a - b)[Math.floor(openings.length / 2)] ?? 0)
  return `first rows after ${median('first')} ms, all after ${median('all')} ms, timeline after ${median('timeline')} ms`
}

function framesText({ perSecond, longestMs }: Frames): string {
  return `${perSecond.toFixed(0)} frames/s, longest ${longestMs.toFixed(0)} ms`
}

function tailFigures(samples: readonly Sample[]): Record<string, string> {
  const rates = samples.map(({ perSecond }) => perSecond)
  const mean = rates.reduce((sum, each) => sum + each, 0) / rates.length
  const minute = samples[Math.min(samples.length - 1, Math.floor(60_000 / SAMPLE_MS) - 1)]
  return {
    'the tail': `${mean.toFixed(0)} frames/s, at least ${Math.min(...rates).toFixed(0)}, longest ${Math.max(...samples.map(({ longestMs }) => longestMs)).toFixed(0)} ms`,
    'memory of the page': `${minute?.heapMB.toFixed(1)} MB after a minute, ${samples.at(-1)?.heapMB.toFixed(1)} MB at the end`,
  }
}
