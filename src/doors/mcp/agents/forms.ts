import { checkText } from '../../../activity/runs/limits.ts'
import { invalid } from '../../../base/errors.ts'
import { hasMoreValues, JSON_VALUES_MAX } from '../../../base/http/json-scan.ts'
import { shown } from '../../../base/http/validation-message.ts'
import { isObject } from '../../../base/json-object.ts'
import { RawJson } from '../../../base/raw-json.ts'
import { ANSWER_LENGTH_MAX, COMMENT_LENGTH_MAX } from '../../../hosted/pauses/schema.ts'
import type { Decision } from '../../../hosted/pauses/store.ts'

/** What a run waits for, as far as a form shows it. */
export interface PauseForm {
  readonly pauseId: string
  readonly type: 'approval' | 'input'
  readonly tool: string | null
  readonly input: RawJson | null
  readonly question: string | null
  readonly options: readonly string[] | null
}

/** Arguments that are longer cannot be shown in a form, so they cannot be approved by one. */
const SHOWN_LENGTH_MAX = 64 * 1024

/** Whether a client can decide it: a person must see exactly what they approve. */
export function canBeShown({ input }: PauseForm): boolean {
  return input === null || input.text.length <= SHOWN_LENGTH_MAX
}

/** The request to the client (`elicitation/create`) to ask a person. */
export function formOf(pause: PauseForm): object {
  const { message, ...requestedSchema } = pause.type === 'approval' ? approvalForm(pause) : questionForm(pause)
  return { method: 'elicitation/create', params: { mode: 'form', message, requestedSchema } }
}

function approvalForm({ tool, input }: PauseForm) {
  const text = input!.text
  return {
    message: `The agent wants to call ${tool} with these arguments:\n${text}`,
    type: 'object',
    properties: {
      confirm: { type: 'boolean', title: 'Approve this call', description: 'If not, the call is rejected.' },
      comment: { type: 'string', title: 'Comment', description: 'The agent is told it after a rejection.' },
      edited_input: {
        type: 'string',
        title: 'Arguments',
        description: 'To approve the call with other arguments: a JSON object.',
        default: text,
      },
    },
    required: ['confirm'],
  }
}

function questionForm({ question, options }: PauseForm) {
  const choices = [...new Set(options ?? [])]
  const answer = { type: 'string', title: 'Answer', ...(choices.length > 0 && { enum: choices }) }
  return { message: question!, type: 'object', properties: { answer }, required: ['answer'] }
}

/**
 * The decision in a client's response to a form; null if the person has not decided. A question cannot be declined: it stays
 * open.
 * @param path of the response, for errors
 * @throws ApiError VALIDATION_ERROR
 */
export function decisionOf(pause: PauseForm, response: unknown, path: string): Decision | null {
  if (!isObject(response)) throw invalid(path, `expected an object; got ${shown(response)}`)
  const { action, content = {} } = response
  if (action === 'cancel') return null
  if (action === 'decline') return pause.type === 'approval' ? { status: 'rejected', comment: null } : null
  if (action !== 'accept')
    throw invalid(`${path}.action`, `expected one of accept, decline, cancel; got ${shown(action)}`)
  if (!isObject(content)) throw invalid(`${path}.content`, `expected an object; got ${shown(content)}`)
  const text = (name: string, lengthMax: number) => textOf(content[name], `${path}.content.${name}`, lengthMax)
  if (pause.type === 'input') {
    const answer = text('answer', ANSWER_LENGTH_MAX)
    if (answer === null) throw invalid(`${path}.content.answer`, 'required: the answer, as a string')
    return { status: 'answered', answer }
  }
  const { confirm } = content
  if (typeof confirm !== 'boolean')
    throw invalid(`${path}.content.confirm`, `expected true to approve or false to reject; got ${shown(confirm)}`)
  const comment = text('comment', COMMENT_LENGTH_MAX)
  if (!confirm) return { status: 'rejected', comment }
  const edited = text('edited_input', Number.POSITIVE_INFINITY)
  return { status: 'approved', comment, editedInput: editedInput(edited, pause, `${path}.content.edited_input`) }
}

/** An empty text counts as none: forms send it for a field that was left empty. */
function textOf(value: unknown, path: string, lengthMax: number): string | null {
  if (value === undefined || value === null || value === '') return null
  if (typeof value !== 'string') throw invalid(path, `expected a string; got ${shown(value)}`)
  checkText(path, value, lengthMax)
  return value
}

function editedInput(text: string | null, { input }: PauseForm, path: string): RawJson | null {
  if (text === null || text === input!.text) return null
  let value: unknown
  try {
    if (!hasMoreValues(text, JSON_VALUES_MAX)) value = JSON.parse(text)
  } catch (error) {
    throw invalid(path, `expected a JSON object; ${(error as Error).message}`)
  }
  if (value === undefined) throw invalid(path, `expected at most ${JSON_VALUES_MAX} values`)
  if (!isObject(value)) throw invalid(path, `expected a JSON object; got ${shown(value)}`)
  return new RawJson(text)
}
