import { createHash } from 'node:crypto'
import type { RunPlan } from '../plan.ts'
import { createRandom } from '../random.ts'
import { TEXTS } from './texts.ts'

/** A score that a run of the demo gets when it ends. */
interface PlannedScore {
  readonly name: 'quality' | 'feedback' | 'verdict'
  readonly value?: number | boolean
  readonly label?: string
  readonly comment?: string
  readonly source: 'judge' | 'person'
}

/** What a judge and the user say about a run. They depend only on the run, so the same seed still plans the same runs. */
export function scoresOf({ input, externalRunId, externalUserId, outcome }: RunPlan): readonly PlannedScore[] {
  if (outcome.status === 'cancelled') return []
  const digest = createHash('sha256')
    .update(JSON.stringify([input, externalRunId, outcome]))
    .digest()
  const random = createRandom(digest.readUInt32LE())
  const isGood = outcome.status === 'completed' && random.chance(0.85)
  const quality = Math.round((isGood ? 0.7 + random.next() * 0.3 : random.next() * 0.6) * 100) / 100
  const judged: PlannedScore[] = [
    { name: 'quality', value: quality, source: 'judge' },
    // The judge is not always of the opinion of the user.
    { name: 'verdict', label: isGood !== random.chance(0.1) ? 'right' : 'wrong', source: 'judge' },
  ]
  if (externalUserId === undefined || !random.chance(0.6)) return judged
  const comment = random.chance(0.4)
    ? { comment: random.pick(isGood ? TEXTS.scores.praise : TEXTS.scores.complaints) }
    : {}
  return [...judged, { name: 'feedback', value: isGood, ...comment, source: 'person' }]
}
