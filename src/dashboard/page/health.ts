import type { Static } from '@sinclair/typebox'
import type { Ready } from '../../ops/schema.ts'
import { h, keyedList, setText } from './dom.ts'
import { count, words } from './format.ts'

type Readiness = Static<typeof Ready>
interface Mark {
  readonly name: string
  readonly state: 'ok' | 'busy' | 'bad'
  readonly text: string
  /** Shown when pointed at. */
  readonly hint?: string
}

/** A consumer this many activities behind is still as good as live. */
const LAG_SHORT = 1_000

/** What `GET /readyz` says, in a line: is everything there, and how far is SQL behind the reports? */
export function healthStrip() {
  const element = h('ul', { class: 'health', 'aria-label': 'Health of the service' })
  const show = keyedList<Mark>(
    element,
    ({ name }) => name,
    () => {
      const item = h('li')
      return {
        element: item,
        update({ state, text, hint }) {
          item.className = state
          item.title = hint ?? ''
          setText(item, text)
        },
      }
    },
  )
  return {
    element,
    async refresh(): Promise<void> {
      show(await ask())
    },
  }
}

async function ask(): Promise<Mark[]> {
  try {
    const answer = await fetch('/readyz', { cache: 'no-store', credentials: 'omit' })
    const { data, error } = (await answer.json()) as { data: Readiness | null; error: { message: string } | null }
    if (data !== null) return marks(data)
    return [{ name: 'service', state: 'bad', text: error?.message ?? 'unavailable' }]
  } catch {
    return [{ name: 'service', state: 'bad', text: 'not reachable' }]
  }
}

function marks({ dependencies, consumers }: Readiness): Mark[] {
  return [
    ...Object.entries(dependencies).map(([name, { ok, problem }]): Mark => {
      return { name, state: ok ? 'ok' : 'bad', text: ok ? name : `${name}: ${problem}` }
    }),
    lagMark(consumers),
  ]
}

/** How far the slowest of the journal's readers is behind; pointing at it tells of each. */
function lagMark(consumers: Readiness['consumers']): Mark {
  const lags = Object.entries(consumers)
  const longest = Math.max(0, ...lags.map(([, { lag }]) => lag ?? Number.POSITIVE_INFINITY))
  return {
    name: 'lag',
    state: longest <= LAG_SHORT ? 'ok' : 'busy',
    text: `lag ${lagText(longest)}`,
    hint: `Behind the reports: ${lags.map(([name, { lag }]) => `${words(name)} ${lagText(lag ?? Number.POSITIVE_INFINITY)}`).join(', ')}`,
  }
}

function lagText(lag: number): string {
  return Number.isFinite(lag) ? count(lag) : 'unknown'
}
