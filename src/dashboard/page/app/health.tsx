import { counted, duration, words } from '../../../base/format.ts'
import { useSession } from '../context/session.ts'
import { useLoad } from '../data/loading.ts'
import type { Schemas } from '../data/records.ts'

type Positions = Pick<Schemas['Ready'], 'partitions' | 'consumers'>

interface Sample {
  readonly atMs: number
  readonly end: number
}

const SAMPLES_MAX = 240
const SOURCES_MAX = 20

/**
 * Estimates the age of the oldest row that consumers of the journal have not read yet. The service reports only the number of
 * unread rows; the ends of the journal at earlier times tell how old they are. The number alone would not do: a busy service
 * always has unread rows, but they are recent.
 */
export class Backlog {
  /** Separate for each set of partitions, because each node reports the positions of its own. */
  private readonly sources = new Map<string, Sample[]>()

  /** A lower bound, in seconds, of how far the slowest consumer is behind; 0 while it keeps up. @param nowMs Unix milliseconds */
  seconds({ partitions, consumers }: Positions, nowMs: number): number {
    if (partitions.length === 0) return 0
    const source = partitions.map(({ partition, epoch }) => `${partition} ${epoch}`).join()
    const end = partitions.reduce((sum, { end_seq }) => sum + end_seq, 0)
    const samples = [...(this.sources.get(source) ?? []), { atMs: nowMs, end }].slice(-SAMPLES_MAX)
    this.sources.delete(source)
    this.sources.set(source, samples)
    const [oldest] = this.sources.keys()
    if (this.sources.size > SOURCES_MAX && oldest !== undefined) this.sources.delete(oldest)
    const reached = end - Math.max(0, ...Object.values(consumers).map(({ lag }) => lag ?? 0))
    const unread = samples.find((sample) => sample.end > reached)
    return unread === undefined ? 0 : Math.round((nowMs - unread.atMs) / 1_000)
  }
}

interface Health {
  readonly state: 'good' | 'wait' | 'bad'
  readonly text: string
  /** One line each. */
  readonly details: readonly string[]
}

const REFRESH_MS = 15_000
/** Loading takes a few seconds; a longer backlog matters to people who look at figures. */
const BEHIND_SECONDS = 30
const backlog = new Backlog()

/** The state of the service (`GET /readyz`) in one line; the hint has the rest. */
export function HealthLine() {
  const { feed } = useSession()
  const { data } = useLoad(readHealth, [], { everyMs: REFRESH_MS })
  if (data === undefined) return <p class="health idle">Checking the service…</p>
  const isLive = feed.isConnected.value
  const shown: Health = isLive || data.state === 'bad' ? data : { ...data, state: 'wait', text: 'Reconnecting…' }
  return (
    <p class={`health ${shown.state}`} title={data.details.join('\n')} role="status">
      {shown.text}
    </p>
  )
}

async function readHealth(): Promise<Health> {
  try {
    const answer = await fetch('/readyz', { cache: 'no-store', credentials: 'omit' })
    const { data, error } = (await answer.json()) as {
      data: Schemas['Ready'] | null
      error: { message: string } | null
    }
    if (data !== null) return healthOf(data)
    return { state: 'bad', text: error?.message ?? 'The service is not ready', details: [] }
  } catch {
    return { state: 'bad', text: 'The service does not respond', details: [] }
  }
}

function healthOf(readiness: Schemas['Ready']): Health {
  const { dependencies, consumers } = readiness
  const lags = Object.entries(consumers)
  const details = [
    ...Object.entries(dependencies).map(([name, { ok, problem }]) => `${words(name)}: ${ok ? 'works' : problem}`),
    ...lags.map(
      ([name, { lag }]) => `${words(name)}: ${lag === null ? 'lag unknown' : `${counted(lag, 'row')} to read`}`,
    ),
  ]
  const broken = Object.entries(dependencies).filter(([, { ok }]) => !ok)
  if (broken.length > 0)
    return { state: 'bad', text: `${broken.map(([name]) => words(name)).join(', ')} does not work`, details }
  const seconds = backlog.seconds(readiness, Date.now())
  if (seconds >= BEHIND_SECONDS) return { state: 'wait', text: `${duration(seconds * 1_000)} behind`, details }
  if (lags.some(([, { lag }]) => lag === null)) return { state: 'wait', text: 'Lag unknown', details }
  return { state: 'good', text: 'All systems work', details }
}
