import type { Decide } from './decide.ts'
import { h, labelled, setText } from './dom.ts'
import { parseIntact, plain, textOf } from './json.ts'
import type { Approval } from './pause.ts'

/**
 * Approves a call, with its own or edited arguments, or rejects it. Only buttons submit, so that no key press does so
 * by accident.
 */
export function approvalForm({ input }: Pick<Approval, 'input'>, decide: Decide): HTMLElement {
  const original = plain(input)
  const approve = h('button', { type: 'button', class: 'primary' }, 'Approve')
  const reject = h('button', { type: 'button' }, 'Reject')
  const edit = h('button', { type: 'button', class: 'quiet', 'aria-expanded': 'false' })
  const text = h('textarea', { rows: '8', spellcheck: 'false', autocomplete: 'off' })
  const mistake = h('p', { class: 'problem', role: 'alert' })
  const editor = h('div', {}, labelled('Call it with', text), mistake)
  const comment = h('textarea', { rows: '1', placeholder: 'optional; sent to the agent with a rejection' })
  let isEdited = false

  function toggle(to: boolean): void {
    isEdited = to
    editor.hidden = !to
    edit.setAttribute('aria-expanded', String(to))
    setText(edit, to ? 'Keep the arguments' : 'Edit the arguments')
    setText(approve, to ? 'Approve with these arguments' : 'Approve')
    if (to) text.value = original
    check()
  }

  function check(): void {
    const checked = isEdited ? readArguments(text.value) : { value: input }
    const problem = 'problem' in checked ? checked.problem : ''
    approve.disabled = problem !== ''
    text.setAttribute('aria-invalid', String(problem !== ''))
    setText(mistake, problem)
  }

  const said = () => (comment.value.trim() === '' ? {} : { comment: comment.value.trim() })
  text.addEventListener('input', check)
  edit.addEventListener('click', () => {
    toggle(!isEdited)
    if (isEdited) text.focus()
  })
  reject.addEventListener('click', () => decide('reject', said()))
  approve.addEventListener('click', () => {
    const edited = isEdited ? readArguments(text.value) : { value: input }
    if ('problem' in edited) return
    const isSame = textOf(edited.value) === textOf(input)
    decide('approve', { ...said(), ...(!isSame && { edited_input: edited.value }) })
  })
  toggle(false)
  return h('div', {}, editor, labelled('Comment', comment), h('div', { class: 'actions' }, approve, reject, edit))
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
