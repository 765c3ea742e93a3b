import { count, words } from '../../../base/format.ts'
import type { AlertState } from '../data/alerts.ts'
import { toneOf } from '../parts/states.tsx'
import { dateAndTime } from '../parts/time.tsx'
import { type Change, type Span, spansOf } from './series.ts'

const SERIES_MAX = 12

interface StripProps {
  readonly changes: readonly Change[]
  /** Unix milliseconds. */
  readonly fromMs: number
  readonly toMs: number
}

/** The states of series over time, one line for each. */
export function StateStrip({ changes, fromMs, toMs }: StripProps) {
  const lines = spansOf(changes, fromMs, toMs)
  const states = [...new Set(lines.flatMap(([, spans]) => spans.map(({ state }) => state)))]
  const share = (ms: number) => `${((100 * ms) / Math.max(1, toMs - fromMs)).toFixed(3)}%`
  return (
    <figure class="strips">
      <figcaption class="chart-legend">
        {states.map((state) => (
          <span key={state} class="chart-key" style={{ '--key': colourOf(state) }}>
            {words(state)}
          </span>
        ))}
      </figcaption>
      {lines.slice(0, SERIES_MAX).map(([name, spans]) => (
        <div key={name} class="strip-line">
          <span class="strip-name" title={name}>
            {name}
          </span>
          <span class="strip" role="img" aria-label={summaryOf(name, spans)}>
            {spans.map(({ state, fromMs: start, toMs: end }) => (
              <i
                key={start}
                title={`${words(state)}, ${dateAndTime(start)} – ${dateAndTime(end)}`}
                style={{ left: share(start - fromMs), width: share(end - start), background: colourOf(state) }}
              />
            ))}
          </span>
        </div>
      ))}
      <div class="strip-line strip-times">
        <span />
        <time>{dateAndTime(fromMs).slice(5, 16)}</time>
        <time>{dateAndTime(toMs).slice(5, 16)}</time>
      </div>
      {lines.length > SERIES_MAX && (
        <p class="hint">
          The {SERIES_MAX} series with the most changes, of {count(lines.length)}.
        </p>
      )}
    </figure>
  )
}

/** `ok` is pale, so that other states stand out. */
function colourOf(state: AlertState): string {
  return state === 'ok'
    ? 'color-mix(in srgb, var(--good) 30%, var(--panel))'
    : `var(--${toneOf(state) === 'idle' ? 'soft' : toneOf(state)})`
}

function summaryOf(name: string, spans: readonly Span[]): string {
  const parts = spans.slice(-10).map(({ state, fromMs }) => `${words(state)} from ${dateAndTime(fromMs)}`)
  return `${name}: ${parts.join(', ')}`
}
