import { useEffect, useRef, useState } from 'preact/hooks'
import { plain, textOf } from '../data/json.ts'
import type { Approval } from '../data/waiting.ts'
import { Field } from '../parts/fields.tsx'
import { type Decide, readArguments } from './decision.ts'
import { Diff } from './diff.tsx'

interface ApprovalFormProps {
  readonly approval: Pick<Approval, 'input'>
  readonly decide: Decide
  readonly isBusy: boolean
}

/**
 * Approves a call, with its own or edited arguments, or rejects it. Only buttons submit, so that no key press does so by
 * accident.
 */
export function ApprovalForm({ approval: { input }, decide, isBusy }: ApprovalFormProps) {
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
  const said = comment.trim() === '' ? {} : { comment: comment.trim() }
  const approve = () => {
    if (!('value' in checked)) return
    const isSame = textOf(checked.value) === textOf(input)
    decide('approve', { ...said, ...(!isSame && { edited_input: checked.value }) })
  }
  return (
    <fieldset class="decision" disabled={isBusy}>
      <legend class="unseen">Decision</legend>
      {isEdited && (
        <>
          <Field label="Call it with" problem={problem}>
            <textarea
              ref={editor}
              rows={Math.min(20, edited.split('\n').length + 1)}
              spellcheck={false}
              autocomplete="off"
              aria-invalid={problem !== ''}
              value={edited}
              onInput={({ currentTarget }) => setEdited(currentTarget.value)}
            />
          </Field>
          {'value' in checked && <Diff before={original} after={plain(checked.value)} />}
        </>
      )}
      <Field label="Comment">
        <textarea
          class="comment"
          rows={1}
          placeholder="optional; sent to the agent with a rejection"
          value={comment}
          onInput={({ currentTarget }) => setComment(currentTarget.value)}
        />
      </Field>
      <div class="actions">
        <button type="button" class="primary" disabled={problem !== ''} onClick={approve}>
          {isEdited ? 'Approve with these arguments' : 'Approve'}
        </button>
        <button type="button" onClick={() => decide('reject', said)}>
          Reject
        </button>
        <button
          type="button"
          class="quiet"
          aria-expanded={isEdited}
          onClick={() => setEdited(isEdited ? null : original)}
        >
          {isEdited ? 'Keep the arguments' : 'Edit the arguments'}
        </button>
      </div>
    </fieldset>
  )
}
