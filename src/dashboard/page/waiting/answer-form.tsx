import { useState } from 'preact/hooks'
import type { InputRequest } from '../data/waiting.ts'
import { Field } from '../parts/fields.tsx'
import type { Decide } from './decision.ts'

interface AnswerFormProps {
  readonly request: Pick<InputRequest, 'options'>
  readonly decide: Decide
  readonly isBusy: boolean
}

/** Answers a question with one of its options or with free text. */
export function AnswerForm({ request: { options = [] }, decide, isBusy }: AnswerFormProps) {
  const [text, setText] = useState('')
  return (
    <fieldset class="decision" disabled={isBusy}>
      <legend class="unseen">Answer</legend>
      {options.length > 0 && (
        <div class="actions" role="group" aria-label="Options">
          {options.map((option) => (
            <button key={option} type="button" onClick={() => decide('answer', { answer: option })}>
              {option}
            </button>
          ))}
        </div>
      )}
      <Field label={options.length === 0 ? 'Answer' : 'Or type an answer'}>
        <textarea rows={2} value={text} onInput={({ currentTarget }) => setText(currentTarget.value)} />
      </Field>
      <div class="actions">
        <button
          type="button"
          class="primary"
          disabled={text.trim() === ''}
          onClick={() => decide('answer', { answer: text })}
        >
          Answer
        </button>
      </div>
    </fieldset>
  )
}
