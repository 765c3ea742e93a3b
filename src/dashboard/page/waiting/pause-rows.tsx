import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { counted, words } from '../../../base/format.ts'
import { isNarrow } from '../context/browser.ts'
import { address, hrefOf, hrefOfRun, navigate } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { PauseLine } from '../data/waiting.ts'
import { Icon } from '../parts/controls.tsx'
import { SessionLink, UserLink } from '../parts/links.tsx'
import { Status } from '../parts/states.tsx'
import { Ago, Ahead } from '../parts/time.tsx'
import { VirtualList } from '../parts/virtual-list.tsx'
import type { PauseRow } from './filters.ts'
import { showCard } from './keys.ts'
import { OpenPause, useDecider } from './pause-card.tsx'
import type { WaitingList } from './waiting-list.ts'

const ROW_HEIGHT = 42
/** On a narrow screen a row has two lines. */
const NARROW_ROW_HEIGHT = 60
/** More rows than this scroll in a box, and only those in view are drawn. */
const PLAIN_ROWS_MAX = 80
/** The height of an open card until it is measured. */
const CARD_HEIGHT = 420

const WAITING_HEADS = ['', 'Kind', 'Agent', 'Asks for', 'User', 'Session', 'Asked', 'Expires']
const DECIDED_HEADS = ['Outcome', 'Agent', 'Asked for', 'User', 'Session', 'Decided by', 'When']

interface PauseRowsProps {
  readonly rows: readonly PauseRow[]
  /** The pause that the address names. */
  readonly openId: string
  readonly label: string
  /** The list of waiting pauses, which knows the state of each; without it, all are decided. */
  readonly list?: WaitingList
}

/** Pauses on one line each; one of them may be open. */
export function PauseRows({ rows, openId, label, list }: PauseRowsProps) {
  const [cardHeight, setCardHeight] = useState(CARD_HEIGHT)
  const openIndex = rows.findIndex((row) => row.type === 'pause' && row.line.id === openId)
  const row = (index: number) => {
    const each = rows[index] as PauseRow
    if (each.type === 'group') return <GroupHead key={`group ${each.rootRunId}`} group={each} list={list} />
    const isOpen = index === openIndex
    return (
      <div key={each.line.id} class="pause-item">
        <Line {...each} list={list} isOpen={isOpen} />
        {isOpen && <OpenCard line={each.line} list={list} onHeight={setCardHeight} />}
      </div>
    )
  }
  const heads = (
    <div class="pause-row pause-heads" aria-hidden="true">
      {(list ? WAITING_HEADS : DECIDED_HEADS).map((head) => (
        <span key={head}>{head}</span>
      ))}
    </div>
  )
  // Decisions are read page by page, as the user asks for them.
  if (list === undefined || rows.length <= PLAIN_ROWS_MAX) {
    return (
      <section class={`panel pause-rows ${list ? '' : 'decided-rows'}`} aria-label={label}>
        {heads}
        {rows.map((_, index) => row(index))}
      </section>
    )
  }
  return (
    <div class="panel pause-rows">
      {heads}
      <VirtualList
        class="pause-box"
        count={rows.length}
        rowHeight={isNarrow.value ? NARROW_ROW_HEIGHT : ROW_HEIGHT}
        label={label}
        opened={openIndex === -1 ? undefined : { index: openIndex, height: cardHeight }}
        reveal={openIndex}
        row={row}
      />
    </div>
  )
}

interface LineProps {
  readonly line: PauseLine
  readonly isInGroup: boolean
  readonly isOpen: boolean
  readonly list: WaitingList | undefined
}

function Line({ line, isInGroup, isOpen, list }: LineProps) {
  const { directory } = useSession()
  const status = list?.statusOf(line) ?? line.status
  const { external_user_id: user, session_id: session } = line
  const isWaiting = status === 'pending'
  return (
    <div
      class={`pause-row ${isOpen ? 'is-open' : ''} ${isWaiting || !list ? '' : 'is-over'} ${isInGroup ? 'in-group' : ''}`}
    >
      {list &&
        (list.canChoose(line) ? <Choice list={list} lines={[line]} what={`this call of ${line.tool}`} /> : <span />)}
      {isWaiting ? <Kind type={line.type} /> : <StatusOf status={status} line={line} />}
      <span>{directory.nameOf(line.agent_id)}</span>
      <button
        type="button"
        class="tail-open"
        data-pause={line.id}
        aria-expanded={isOpen}
        onClick={() => navigate(isOpen ? closedHref() : hrefOf('waiting', [line.kind, line.id], address.value.query))}
      >
        {line.tool !== null && <code class="strong">{line.tool}</code>}
        <span class={line.tool === null ? '' : 'preview'}>{line.preview}</span>
      </button>
      <span class="pause-user">{user && <UserLink id={user} />}</span>
      <span class="pause-session">{session && <SessionLink id={session} />}</span>
      {list ? <Ago at={line.created_at} /> : <Decider line={line} />}
      <span class="pause-end">
        {!list && line.decided_at !== null && <Ago at={line.decided_at} />}
        {list && isWaiting && line.expires_at !== null && <Ahead at={line.expires_at} />}
      </span>
    </div>
  )
}

/** The address without the open pause. */
function closedHref(): string {
  return hrefOf('waiting', [], address.value.query)
}

function Kind({ type }: Pick<PauseLine, 'type'>) {
  const isApproval = type === 'approval'
  return (
    <span class="tail-kind">
      <Icon name={isApproval ? 'tool' : 'sessions'} />
      <span>{isApproval ? 'approval' : 'question'}</span>
    </span>
  )
}

function StatusOf({ status, line }: { readonly status: string; readonly line: PauseLine }) {
  if (status === 'gone') return <Status name="cancelled" text="decided" />
  return <Status name={status} text={line.is_edited ? 'approved, edited' : words(status)} />
}

function Decider({ line }: { readonly line: PauseLine }) {
  const who = useDecider()(line)
  return (
    <span class="pause-decider" title={line.reply === null ? who : `${who}: ${line.reply}`}>
      {who}
      {line.reply !== null && <small>{line.reply}</small>}
    </span>
  )
}

interface ChoiceProps {
  readonly list: WaitingList
  readonly lines: readonly PauseLine[]
  /** What is chosen, as in "Choose all calls of this run". */
  readonly what: string
}

/** Chooses lines to be decided together. */
export function Choice({ list, lines, what }: ChoiceProps) {
  const open = lines.filter((line) => list.canChoose(line))
  const count = open.reduce((sum, { id }) => sum + (list.chosen.value.has(id) ? 1 : 0), 0)
  return (
    <input
      type="checkbox"
      aria-label={`Choose ${what}`}
      checked={count > 0 && count === open.length}
      ref={(box) => {
        if (box) box.indeterminate = count > 0 && count < open.length
      }}
      disabled={open.length === 0}
      onChange={() => list.toggle(open)}
    />
  )
}

interface GroupHeadProps {
  readonly group: PauseRow & { readonly type: 'group' }
  readonly list: WaitingList | undefined
}

function GroupHead({ group: { rootRunId, lines }, list }: GroupHeadProps) {
  return (
    <div class="pause-row pause-group">
      {list ? <Choice list={list} lines={lines} what="all calls of this run" /> : <span />}
      <span>
        {counted(lines.length, 'request')} of the run <a href={hrefOfRun(rootRunId)}>…{rootRunId.slice(-8)}</a>
      </span>
    </div>
  )
}

interface OpenCardProps {
  readonly line: PauseLine
  readonly list: WaitingList | undefined
  readonly onHeight: (px: number) => void
}

function OpenCard({ line, list, onHeight }: OpenCardProps) {
  const box = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    const element = box.current as HTMLElement
    const observer = new ResizeObserver(() => onHeight(element.offsetHeight))
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  return (
    <div ref={box} class="pause-open">
      <OpenPause kind={line.kind} id={line.id} stamp={list?.statusOf(line)} onShown={(card) => showCard(card, list)} />
    </div>
  )
}
