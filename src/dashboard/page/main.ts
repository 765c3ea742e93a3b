import { createApi } from './api.ts'
import { openDashboard } from './dashboard.ts'
import { keyPrompt } from './key-prompt.ts'

/** Stored for this tab only: never in a URL, a cookie or persistent storage. */
const KEY = 'workspace-key'

const remembered = sessionStorage.getItem(KEY)
if (remembered === null) ask()
else enter(remembered)

function ask(problem = ''): void {
  sessionStorage.removeItem(KEY)
  document.body.replaceChildren(keyPrompt(problem, enter))
  document.querySelector('input')?.focus()
}

function enter(key: string): void {
  sessionStorage.setItem(KEY, key)
  const closing = new AbortController()
  const { signal } = closing
  const leave = (problem?: string) => {
    closing.abort()
    ask(problem)
  }
  document.body.replaceChildren(...openDashboard({ api: createApi(key, signal), signal, leave }))
}
