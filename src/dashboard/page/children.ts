import type { Api } from './api.ts'
import type { Directory } from './directory.ts'
import { h, keyedList, setText } from './dom.ts'
import { shortId, words } from './format.ts'
import { durationOf, type Run } from './run.ts'

interface ChildrenDeps {
  readonly api: Api
  readonly directory: Directory
  readonly runId: string
}

const CHILDREN_MAX = 50

/** The child runs of a run, newest first; hidden if there are none. */
export function childrenPanel({ api, directory, runId }: ChildrenDeps) {
  const list = h('ol', { class: 'children' })
  const more = h('p', { class: 'hint' }, `Only the newest ${CHILDREN_MAX} are shown.`)
  const element = h('section', { hidden: true }, h('h3', {}, 'Child runs'), list, more)
  const show = keyedList<Run>(
    list,
    ({ run_id }) => run_id,
    ({ run_id }) => {
      const status = h('span')
      const name = h('a', { href: `#/runs/${run_id}` })
      const took = h('span', { class: 'hint' })
      return {
        element: h('li', {}, status, name, took),
        update(run) {
          setText(status, words(run.status))
          status.className = `status ${run.status}`
          setText(name, `${directory.nameOf(run.agent_id)} ${shortId(run_id)}`)
          setText(took, durationOf(run))
        },
      }
    },
  )
  return {
    element,
    async refresh(): Promise<void> {
      const page = await api.get<{ items: readonly Run[]; next_cursor: string | null }>(
        `/api/v1/runs/${runId}/children`,
        { limit: CHILDREN_MAX },
      )
      show(page.items)
      element.hidden = page.items.length === 0
      more.hidden = page.next_cursor === null
    },
  }
}
