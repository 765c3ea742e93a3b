import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { parseIntact, plain, textOf } from '../data/json.ts'
import type { Approval, InputRequest } from '../data/waiting.ts'
import { Button } from '../parts/controls.tsx'
import { Field } from '../parts/fields.tsx'

interface FormProps {
  /** Sends the decision. */
  readonly decide: (action: 'approve' | 'reject' | 'answer', body: object) => void
  readonly isBusy: boolean
}

/** Answers a question with one of its options or with free text. */
export function AnswerForm({ options = [], decide, isBusy }: Pick<InputRequest, 'options'> & FormProps) {
  const [text, setText] = useState('')
  const answer = (answer: string) => decide('answer', { answer })
  return (
    <fieldset class="decision" disabled={isBusy}>
      <legend class="unseen">Answer</legend>
      {options.length > 0 && (
        <div class="actions" role="group" aria-label="Options">
          {options.map((option) => (
            <Button key={option} text={option} onClick={() => answer(option)} />
          ))}
        </div>
      )}
      <Field label={options.length === 0 ? 'Answer' : 'Or type an answer'}>
        <textarea rows={2} value={text} onInput={({ currentTarget }) => setText(currentTarget.value)} />
      </Field>
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
        <Button
          class="primary"
          text={isEdited ? 'Approve with these arguments' : 'Approve'}
          disabled={problem !== ''}
          onClick={approve}
        />
        <Button text="Reject" onClick={() => decide('reject', commentBody)} />
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

const SIGNS = { same: ' ', removed: '−', added: '+' }

/** What changed between two texts, line by line; nothing if they are the same. */
export function Diff({ before, after }: { readonly before: string; readonly after: string }) {
  const lines = useMemo(() => diffLines(before, after), [before, after])
  if (lines.every(({ kind }) => kind === 'same')) return null
  return (
    <pre class="diff" tabIndex={0} role="group" aria-label="Changes">
      {lines.map(({ kind, text }, index) => (
        <span key={index} class={`diff-${kind}`}>
          {SIGNS[kind]} {text}
          {'\n'}
        </span>
      ))}
    </pre>
  )
}

/** A line of a difference between two texts. */
interface DiffLine {
  readonly kind: keyof typeof SIGNS
  readonly text: string
}

/** Longer texts are compared as a whole. */
const LINES_MAX = 400

/** What changed, line by line, by the longest common subsequence. */
export function diffLines(before: string, after: string): DiffLine[] {
  const a = before.split('\n')
  const b = after.split('\n')
  const isLong = Math.max(a.length, b.length) > LINES_MAX
  /** Length of the longest common subsequence of what follows line i of `a` and line j of `b`. */
  const common = isLong ? [] : a.map(() => new Uint16Array(b.length + 1)).concat(new Uint16Array(b.length + 1))
  const at = (i: number, j: number) => common[i]?.[j] ?? 0
  for (let i = common.length - 2; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--)
      common[i]![j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
  }
  const lines: DiffLine[] = []
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length) {
    if (!isLong && i < a.length && a[i] === b[j]) {
      lines.push({ kind: 'same', text: a[i++]! })
      j++
    } else if (i < a.length && (j === b.length || at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ kind: 'removed', text: a[i++]! })
    } else lines.push({ kind: 'added', text: b[j++]! })
  }
  return lines
}
