import type { ComponentChildren } from 'preact'
import { addressState, oneOf, text } from '../context/address-state.ts'
import { address, hrefOf, type ViewName } from '../context/router.ts'
import type { Loading } from '../data/loading.ts'
import { Icon } from './controls.tsx'
import { Loaded } from './states.tsx'
import { useRowKeys } from './table.tsx'

interface ResourceViewProps {
  readonly view: ViewName
  readonly title: string
  /** What one of them is called. */
  readonly noun: string
  readonly list: Loading<unknown>
  /** The one that the address names, if it exists. */
  readonly pane: ComponentChildren
  /** The form for a new one. */
  readonly form: ComponentChildren
  /** The list; it is shown once it has been read. */
  readonly children: ComponentChildren
}

/** What links of the view keep. The rest of the address may be the start of a new one. */
const LIST = addressState({ sort: text(), new: oneOf(['no', 'yes']) })

/** What the workspace has of one kind, and beside that the one that the address names or the form for a new one. */
export function ResourceView({ view, title, noun, list, pane, form, children }: ResourceViewProps) {
  useRowKeys()
  const { path } = address.value
  const { sort, new: isNewOne } = LIST.value
  const isNew = isNewOne === 'yes'
  return (
    <section class={`view ${view} ${pane || isNew ? 'with-detail' : ''}`} aria-label={title}>
      <div class="view-head">
        <h1>{title}</h1>
        <div class="view-tools">
          <a class="button primary small" href={hrefOf(view, [], LIST.write({ sort, new: 'yes' }))}>
            <Icon name="plus" />
            <span>New {noun}</span>
          </a>
        </div>
      </div>
      <Loaded read={list} lines={6}>
        {() => (
          <>
            {path[0] !== undefined && !pane && !list.isLoading && (
              <p class="hint">This {noun} does not exist. Somebody may have deleted it.</p>
            )}
            <div class="split">
              {children}
              {isNew ? (
                <section class="panel detail" aria-label={`New ${noun}`}>
                  <div class="detail-head">
                    <h2>New {noun}</h2>
                    <a class="icon-only" href={hrefOf(view, [], LIST.write({ sort }))} aria-label="Close">
                      <Icon name="close" />
                    </a>
                  </div>
                  {form}
                </section>
              ) : (
                pane
              )}
            </div>
          </>
        )}
      </Loaded>
    </section>
  )
}
