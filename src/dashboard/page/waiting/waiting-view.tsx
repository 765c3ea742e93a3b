import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { count, counted } from '../../../base/format.ts'
import { isNarrow } from '../context/browser.ts'
import { address, hrefOf, navigate } from '../context/router.ts'
import { perSession, useSession } from '../context/session.ts'
import { loadingList } from '../data/loading.ts'
import { isUuid } from '../data/records.ts'
import { isPauseKind, LISTED_MAX, type NamedPause, type PauseLine } from '../data/waiting.ts'
import { Button, openTab, Tabs } from '../parts/controls.tsx'
import { Empty, Loaded } from '../parts/states.tsx'
import { DecideDialog } from './decide-dialog.tsx'
import { DecidedList } from './decided-list.ts'
import { isFiltered, matches, PAUSES, rowsOf } from './filters.ts'
import { showCard, useListKeys } from './keys.ts'
import { OpenPause } from './pause-card.tsx'
import { PauseFilters } from './pause-filters.tsx'
import { Choice, PauseRows } from './pause-rows.tsx'
import { CHOSEN_MAX, WaitingList } from './waiting-list.ts'

const TABS = { waiting: 'Waiting', decided: 'Decided' }

const listOf = perSession((session) => new WaitingList(session))

/** Approvals and questions of hosted runs: those that wait for a person, and those that were decided. */
export function WaitingView() {
  const list = listOf(useSession())
  const tabs = { name: 'tab', tabs: TABS }
  const isDecided = openTab(tabs) === 'decided'
  return (
    <section class="view waiting" aria-label="Waiting">
      <div class="view-head">
        <h1>Waiting</h1>
        <Tabs
          label="Which"
          {...tabs}
          onChange={(tab) => navigate(hrefOf('waiting', [], { ...address.value.query, tab }))}
        />
        {!isDecided && <NewOnes list={list} />}
      </div>
      {isDecided ? <Decided /> : <Pending list={list} />}
    </section>
  )
}

function NewOnes({ list }: { readonly list: WaitingList }) {
  const number = list.newCount.value
  return (
    <div role="status" class="new-runs">
      {number > 0 && <Button class="small" text={`↑ ${count(number)} new`} onClick={() => list.showNew()} />}
    </div>
  )
}

/** The pause that the address names. */
function namedPause(): NamedPause | null {
  const [kind, id = ''] = address.value.path
  return isPauseKind(kind) && isUuid(id) ? { kind, id: id.toLowerCase() } : null
}

function Pending({ list }: { readonly list: WaitingList }) {
  const { waiting } = useSession()
  const [deciding, setDeciding] = useState<readonly PauseLine[] | null>(null)
  const [isOpened, setOpened] = useState(false)
  useEffect(() => void list.open().then(() => setOpened(true)), [list])
  const lines = list.kept.value
  const filter = PAUSES.value
  const shown = useMemo(() => {
    const found = lines.filter((line) => matches(line, filter))
    return filter.sort === 'oldest' ? found.reverse() : found
  }, [lines, JSON.stringify(filter)])
  const rows = useMemo(() => rowsOf(shown), [shown])
  const decideChosen = () => setDeciding(shown.filter(({ id }) => list.chosen.value.has(id)))
  useListKeys(list, decideChosen)
  const read = waiting.pending.reading(waiting.pending.isLoaded.value ? rows : undefined)
  const named = namedPause()
  const linked = useRef('')
  // A card stays above the list while it is open, also once the list has it: what is typed into it would be lost.
  if (named?.id !== linked.current) linked.current = ''
  if (isOpened && named !== null && !shown.some(({ id }) => id === named.id)) linked.current = named.id
  const isLinked = linked.current !== ''
  return (
    <>
      {lines.length > 0 && (
        <PauseFilters lines={lines} isDecided={false}>
          <ShownNote shown={shown.length} all={lines.length} hasMore={waiting.hasMore.value} />
        </PauseFilters>
      )}
      {isLinked && named !== null && <LinkedPause named={named} list={list} />}
      <Loaded read={read} lines={6} empty={<Nothing isFiltered={isFiltered(filter)} />}>
        {() => (
          <PauseRows rows={rows} openId={isLinked ? '' : (named?.id ?? '')} label="Waiting for a person" list={list} />
        )}
      </Loaded>
      {rows.length > 0 && (
        <ChoiceBar list={list} shown={shown} decide={decideChosen}>
          {!isNarrow.value && (
            <span class="hint">
              <kbd>j</kbd> <kbd>k</kbd> move, <kbd>Enter</kbd> opens, <kbd>x</kbd> chooses, <kbd>a</kbd> and{' '}
              <kbd>d</kbd> go to Approve and Reject
            </span>
          )}
        </ChoiceBar>
      )}
      {deciding !== null && (
        <DecideDialog
          lines={deciding}
          close={() => {
            setDeciding(null)
            list.choose([])
          }}
        />
      )}
    </>
  )
}

interface ShownNoteProps {
  readonly shown: number
  readonly all: number
  readonly hasMore: boolean
}

function ShownNote({ shown, all, hasMore }: ShownNoteProps) {
  const number = `${shown === all ? '' : `${count(shown)} of `}${counted(all, 'request')}`
  return (
    <span class="hint" role="status">
      {number}
      {hasMore && `: the newest ${count(LISTED_MAX)} are listed; others follow as these are decided`}
    </span>
  )
}

/** A linked pause that the list does not have. It stands above all others, so that no other is decided by mistake. */
function LinkedPause({ named, list }: { readonly named: NamedPause; readonly list?: WaitingList }) {
  return (
    <div class="panel pause-named">
      <OpenPause
        key={named.id}
        {...named}
        note="The request that you followed a link to"
        onShown={(card) => showCard(card, list)}
      />
    </div>
  )
}

function Nothing({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered) return <Empty title="No waiting request matches these filters." icon="filter" />
  return (
    <Empty title="Nothing is waiting for a person." icon="check">
      <p>
        A call waits here for approval if its tool <em>requires approval</em>; a question, if its agent may ask. Both
        are settings of a hosted <a href={hrefOf('agents')}>agent</a>.
      </p>
    </Empty>
  )
}

interface ChoiceBarProps {
  readonly list: WaitingList
  readonly shown: readonly PauseLine[]
  readonly decide: () => void
  readonly children: preact.ComponentChildren
}

/** Controls to choose all shown calls and to decide the chosen ones; they stay in view. */
function ChoiceBar({ list, shown, decide, children }: ChoiceBarProps) {
  const number = shown.reduce((sum, { id }) => sum + (list.chosen.value.has(id) ? 1 : 0), 0)
  return (
    <div class={`choice-bar ${number > 0 ? 'panel is-chosen' : ''}`}>
      <label class="check">
        <Choice list={list} lines={shown.slice(0, CHOSEN_MAX)} what="all calls that are shown" />
        {number === 0 ? 'Choose all' : `${counted(number, 'call')} chosen`}
      </label>
      {number > 0 && <Button class="primary small" text="Decide…" onClick={decide} />}
      {number > 0 && <Button class="quiet small" text="None" onClick={() => list.choose([])} />}
      {children}
    </div>
  )
}

/** What was decided, and by whom. */
function Decided() {
  const { api, signal, waiting } = useSession()
  const [list] = useState(() => new DecidedList(api, signal))
  const filter = PAUSES.value
  useEffect(() => list.open(filter), [list, JSON.stringify(filter)])
  const { value: lines, isLoading } = list.lines
  const named = namedPause()
  const isListed = lines.some(({ id }) => id === named?.id)
  return (
    <>
      <PauseFilters lines={[...lines, ...waiting.pending.value]} isDecided />
      {named !== null && !isListed && !isLoading.value && <LinkedPause named={named} />}
      <Loaded
        read={loadingList(list.lines)}
        lines={6}
        empty={
          <Empty
            title={list.hasMore.value ? 'None of the newest decisions match.' : 'Nothing has been decided yet.'}
            icon="check"
          />
        }
      >
        {() => (
          <PauseRows
            rows={lines.map((line) => ({ type: 'pause', line, isInGroup: false }))}
            openId={named?.id ?? ''}
            label="Decided"
          />
        )}
      </Loaded>
      {list.hasMore.value && (
        <div class="list-end">
          <Button class="quiet" text="Older decisions" onClick={() => void list.loadMore()} />
        </div>
      )}
    </>
  )
}
