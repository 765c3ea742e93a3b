import type { Decide } from './decide.ts'
import { h, labelled } from './dom.ts'
import type { InputRequest } from './pause.ts'

/** Answers a question with one of its options or with free text. */
export function answerForm({ options = [] }: Pick<InputRequest, 'options'>, decide: Decide): HTMLElement {
  const choices = options.map((option) => {
    const button = h('button', { type: 'button' }, option)
    button.addEventListener('click', () => decide('answer', { answer: option }))
    return button
  })
  const text = h('textarea', { rows: '2' })
  const send = h('button', { type: 'button', class: 'primary', disabled: true }, 'Answer')
  text.addEventListener('input', () => {
    send.disabled = text.value.trim() === ''
  })
  send.addEventListener('click', () => decide('answer', { answer: text.value }))
  return h(
    'div',
    {},
    ...(choices.length === 0
      ? []
      : [h('div', { class: 'actions', role: 'group', 'aria-label': 'Options' }, ...choices)]),
    labelled(choices.length === 0 ? 'Answer' : 'Or type an answer', text),
    h('div', { class: 'actions' }, send),
  )
}
