import { TypeCompiler } from '@sinclair/typebox/compiler'
import type { Problem } from '../../base/errors.ts'
import { validationProblems } from '../../base/http/validation-message.ts'
import { NewScore } from './schema.ts'

const checked = TypeCompiler.Compile(NewScore)

/** The members of which at least one is required. */
const VERDICTS = ['value', 'label', 'text'] as const
/** The members of which at most one is allowed. Without them, the run is scored. */
const SUBJECTS = ['task_id', 'event_id', 'session_id'] as const

export const NO_VERDICT = `required: one of ${VERDICTS.join(', ')}`
export const TWO_SUBJECTS = `expected at most one of ${SUBJECTS.join(', ')}`

/** What is wrong with a score, by member. */
export function scoreProblems(score: unknown): readonly Problem[] {
  if (!checked.Check(score)) return validationProblems({ type: 'score', value: score, findings: checked.Errors(score) })
  if (VERDICTS.every((name) => score[name] === undefined)) return [{ param: 'value', message: NO_VERDICT }]
  const [, second] = SUBJECTS.filter((name) => score[name] !== undefined)
  return second === undefined ? [] : [{ param: second, message: TWO_SUBJECTS }]
}
