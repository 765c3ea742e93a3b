import { counted } from '../../../base/format.ts'
import { useSession } from '../context/session.ts'
import type { AlertDefinition } from '../data/alerts.ts'
import { numOrNull } from '../data/json.ts'
import { useLoad } from '../data/loading.ts'
import { type Colour, type Series, TimeChart } from '../parts/chart.tsx'
import { Loaded } from '../parts/states.tsx'
import { figure } from './series.ts'
import { historyOf, historyQuery } from './value-history.ts'

const DAY_MS = 86_400_000
const LINES: readonly Colour[] = ['chart-1', 'chart-2', 'chart-3', 'chart-4', 'chart-5', 'chart-6']

/** The values of an alert over the last day, with the value at which it fires. */
export function ValueChart({ alert, text }: { readonly alert: AlertDefinition; readonly text: string }) {
  const { queries } = useSession()
  const read = useLoad(
    async (signal) => {
      const toMs = Date.now()
      const asked = historyQuery(alert, text, { fromMs: toMs - DAY_MS, toMs })
      if (asked === null) return null
      const result = await queries.run(asked.query, asked.params, signal)
      return { times: asked.times.map((ms) => ms / 1_000), values: historyOf(result, alert) }
    },
    [text, alert.params, alert.window, alert.condition, alert.by],
  )
  return (
    <Loaded read={read} lines={4}>
      {(history) =>
        history === null ? (
          <p class="hint">No chart of values: the query does not use the window of the alert (from, to).</p>
        ) : (
          <ValueLines alert={alert} {...history} />
        )
      }
    </Loaded>
  )
}

interface ValuesProps {
  readonly alert: AlertDefinition
  /** Unix seconds. */
  readonly times: readonly number[]
  readonly values: ReturnType<typeof historyOf>
}

function ValueLines({ alert, times, values: bySeries }: ValuesProps) {
  const lines = [...bySeries]
  if (lines.length === 0) return <p class="hint value-chart">The query had no rows in the last day.</p>
  const shown = lines.slice(0, LINES.length).map(([label, values], at): Series => {
    return { label, values, colour: LINES[at] as Colour }
  })
  const { condition } = alert
  const level = (label: string, value: unknown, colour: Colour): Series[] => {
    const number = numOrNull(value)
    return number === null ? [] : [{ label, colour, values: times.map(() => number) }]
  }
  const levels =
    condition === 'any_row'
      ? []
      : [
          ...level(`fires ${condition.op} ${figure(Number(condition.value))}`, condition.value, 'bad'),
          ...level('recovers', condition.recover_value, 'wait'),
        ]
  return (
    <section class="value-chart" aria-label="Values of the last day">
      <h3>Values of the last day</h3>
      <TimeChart title="Values of the last day" times={times} series={[...shown, ...levels]} format={figure} />
      <p class="hint">
        {counted(times.length, 'window')}, read now, so rows that arrived late are included.
        {lines.length > shown.length && ` The first ${shown.length} of ${lines.length} series.`}
      </p>
    </section>
  )
}
