import type { Static } from '@sinclair/typebox'
import type { Ready } from '../../ops/schema.ts'
import { h, keyedList, setText } from './dom.ts'
import { count, words } from './format.ts'

type Readiness = Static<typeof Ready>
interface Mark {
  readonly name: string
  readonly state: 'ok' | 'busy' | 'bad'
  readonly text: string
  /** Tooltip. */
  readonly hint?: string
}

/** A consumer up to this many activities behind counts as live. */
const LAG_SHORT = 1_000

/** `GET /readyz` in one line: the state of each dependency, and the consumers' lag. */
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

/** The lag of the journal's slowest consumer; the tooltip lists all of them. */
function lagMark(consumers: Readiness['consumers']): Mark {
  const lags = Object.entries(consumers)
  const longest = Math.max(0, ...lags.map(([, { lag }]) => lag ?? Number.POSITIVE_INFINITY))
  return {
    name: 'lag',
    state: longest <= LAG_SHORT ? 'ok' : 'busy',
    text: `lag ${lagText(longest)}`,
    hint: `Activities not yet consumed: ${lags.map(([name, { lag }]) => `${words(name)} ${lagText(lag ?? Number.POSITIVE_INFINITY)}`).join(', ')}`,
  }
}

function lagText(lag: number): string {
  return Number.isFinite(lag) ? count(lag) : 'unknown'
}
