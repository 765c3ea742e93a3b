import { useEffect, useRef, useState } from 'preact/hooks'
import { parseIntact } from '../../../base/intact-json.ts'
import { useRefusal } from '../context/session.ts'
import { plain, textOf } from '../data/json.ts'
import type { Action, Approval, InputRequest } from '../data/waiting.ts'
import { Button } from '../parts/controls.tsx'
import { Diff } from '../parts/diff.tsx'
import { TextField } from '../parts/fields.tsx'

interface FormProps {
  /** Sends the decision. */
  readonly decide: (action: Action, body: object) => void
  readonly isBusy: boolean
}

interface AnswerFormProps extends FormProps {
  readonly options: InputRequest['options']
}

/** Answers a question with one of its options or with free text. */
export function AnswerForm({ options = [], decide, isBusy }: AnswerFormProps) {
  const [text, setText] = useState('')
  const answer = (answer: string) => decide('answer', { answer })
  const refusal = useRefusal('approver')
  return (
    <fieldset class="decision" disabled={isBusy || refusal !== undefined}>
      <legend class="unseen">Answer</legend>
      {refusal && <p class="hint">{refusal}</p>}
      {options.length > 0 && (
        <fieldset class="actions" aria-label="Options">
          {options.map((option) => (
            <Button key={option} text={option} onClick={() => answer(option)} />
          ))}
        </fieldset>
      )}
      <TextField
        label={options.length === 0 ? 'Answer' : 'Or type an answer'}
        data-action="approve"
        rows={2}
        value={text}
        set={setText}
      />
      <div class="actions">
        <Button class="primary" text="Answer" disabled={text.trim() === ''} onClick={() => answer(text)} />
      </div>
    </fieldset>
  )
}

/**
 * Approves a call, with its own or edited arguments, or rejects it. Only buttons submit, so that no key press does so by
 * accident.
 */
export function ApprovalForm({ input, decide, isBusy }: Pick<Approval, 'input'> & FormProps) {
  const original = plain(input)
  const [edited, setEdited] = useState<string | null>(null)
  const [comment, setComment] = useState('')
  const editor = useRef<HTMLTextAreaElement>(null)
  const checked = edited === null ? { value: input } : readArguments(edited)
  const problem = 'problem' in checked ? checked.problem : ''
  const isEdited = edited !== null
  useEffect(() => {
    if (isEdited) editor.current?.focus()
  }, [isEdited])
  const commentBody = comment.trim() === '' ? {} : { comment: comment.trim() }
  const approve = () => {
    if (!('value' in checked)) return
    const isSame = textOf(checked.value) === textOf(input)
    decide('approve', { ...commentBody, ...(!isSame && { edited_input: checked.value }) })
  }
  const refusal = useRefusal('approver')
  return (
    <fieldset class="decision" disabled={isBusy || refusal !== undefined}>
      <legend class="unseen">Decision</legend>
      {refusal && <p class="hint">{refusal}</p>}
      {isEdited && (
        <>
          <TextField
            label="Call it with"
            problem={problem}
            field={editor}
            rowsMax={20}
            spellcheck={false}
            value={edited}
            set={setEdited}
          />
          {'value' in checked && <Diff before={original} after={plain(checked.value)} />}
        </>
      )}
      <TextField
        label="Comment"
        class="comment"
        rows={1}
        placeholder="optional; sent to the agent with a rejection"
        value={comment}
        set={setComment}
      />
      <div class="actions">
        <Button
          class="primary"
          text={isEdited ? 'Approve with these arguments' : 'Approve'}
          data-action="approve"
          disabled={problem !== ''}
          onClick={approve}
        />
        <Button text="Reject" data-action="reject" onClick={() => decide('reject', commentBody)} />
        <Button
          class="quiet"
          text={isEdited ? 'Keep the arguments' : 'Edit the arguments'}
          aria-expanded={isEdited}
          onClick={() => setEdited(isEdited ? null : original)}
        />
      </div>
    </fieldset>
  )
}

/** Parses edited arguments: a JSON object, whose numbers keep their digits. */
export function readArguments(text: string): { readonly value: unknown } | { readonly problem: string } {
  try {
    const value = parseIntact(text)
    return /^\s*\{/.test(text) ? { value } : { problem: 'expected a JSON object, such as {"name": "value"}' }
  } catch (error) {
    return { problem: (error as Error).message }
  }
}
