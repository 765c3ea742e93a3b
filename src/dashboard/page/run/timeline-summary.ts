import { count, counted, dollars } from '../../../base/format.ts'
import type { Bar } from './bars.ts'

/** Types of the events that end a call. */
const CALLS = { model: 'llm.call', tool: 'tool.call.finished' } as const

/** How many calls a run has made, also if not all of them are drawn, and what they cost. @param events all of the run */
export function timelineSummary(
  bars: readonly Pick<Bar, 'kind' | 'usage'>[],
  events: readonly { readonly type: string }[],
  run: { readonly cost_usd: number },
): string {
  const calls = (kind: keyof typeof CALLS) => {
    const drawn = bars.filter((bar) => bar.kind === kind).length
    const all = Math.max(drawn, events.filter(({ type }) => type === CALLS[kind]).length)
    return {
      drawn,
      all,
      text: drawn < all ? `${count(drawn)} of ${counted(all, `${kind} call`)} shown` : counted(all, `${kind} call`),
    }
  }
  const [models, tools] = [calls('model'), calls('tool')]
  const drawnCost = bars.reduce((sum, { kind, usage }) => sum + (kind === 'model' ? (usage?.costUsd ?? 0) : 0), 0)
  const cost = models.drawn < models.all ? run.cost_usd : drawnCost
  const parts = [models.all > 0 && models.text, tools.all > 0 && tools.text, cost > 0 && dollars(cost)]
  return parts.filter((part) => part !== false).join(' · ')
}
