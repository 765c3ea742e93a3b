import { TypeCompiler } from '@sinclair/typebox/compiler'
import { validationMessage } from '../../base/http/validation-message.ts'
import { NewScore } from './schema.ts'

const checked = TypeCompiler.Compile(NewScore)

/** The members of which at least one is required. */
const VERDICTS = ['value', 'label', 'text'] as const
/** The members of which at most one is allowed. Without them, the run is scored. */
const SUBJECTS = ['task_id', 'event_id', 'session_id'] as const

export const NO_VERDICT = `required: one of ${VERDICTS.join(', ')}`
export const TWO_SUBJECTS = `expected at most one of ${SUBJECTS.join(', ')}`

/** What is wrong with a score, naming the member, such as `name: required`; undefined if nothing is. */
export function scoreProblem(score: unknown): string | undefined {
  if (!checked.Check(score)) {
    const valueError = checked.Errors(score).First()
    return validationMessage({ type: 'score', value: score, valueError })
  }
  if (VERDICTS.every((name) => score[name] === undefined)) return `value: ${NO_VERDICT}`
  if (SUBJECTS.filter((name) => score[name] !== undefined).length > 1) return TWO_SUBJECTS
  return undefined
}
