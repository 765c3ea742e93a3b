import { signal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { counted } from '../../../base/format.ts'
import { hrefOfRun } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import { forEachAtOnce } from '../data/api.ts'
import { failureOf } from '../data/loading.ts'
import type { Approval, PauseLine } from '../data/waiting.ts'
import { Button, Dialog } from '../parts/controls.tsx'
import { TextField } from '../parts/fields.tsx'
import { Scrollable } from '../parts/scrollable.tsx'
import { Skeleton, Status } from '../parts/states.tsx'
import { Question } from './pause-card.tsx'

interface DecideDialogProps {
  readonly lines: readonly PauseLine[]
  readonly close: () => void
}

/**
 * Decides several approvals with one comment. Each is shown with its exact arguments first, and only what was shown is
 * decided.
 */
export function DecideDialog({ lines, close }: DecideDialogProps) {
  const { waiting } = useSession()
  const [problems] = useState(() => signal<ReadonlyMap<string, string>>(new Map()))
  const [comment, setComment] = useState('')
  const [state, setState] = useState<'reading' | 'ready' | 'deciding' | 'done'>('reading')
  const attempt = (work: (line: PauseLine) => Promise<unknown>, of: readonly PauseLine[]) =>
    forEachAtOnce(of, async (line) => {
      await work(line).catch((error: unknown) => {
        problems.value = new Map(problems.value).set(line.id, failureOf(error).message)
      })
    })
  useEffect(() => {
    void attempt(({ kind, id }) => waiting.read(kind, id), lines).then(() => setState('ready'))
  }, [])
  const shown = (line: PauseLine) => waiting.known.value.get(line.id) as Approval | undefined
  const open = lines.filter((line) => shown(line)?.status === 'pending' && !problems.value.has(line.id))
  const decide = async (action: 'approve' | 'reject') => {
    setState('deciding')
    const body = comment.trim() === '' ? {} : { comment: comment.trim() }
    await attempt((line) => waiting.decide(line, action, body), open)
    setState('done')
  }
  // The button that had the focus is gone, so the next one takes it.
  const foot = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (state === 'done') foot.current?.querySelector('button')?.focus()
  }, [state])
  const calls = counted(open.length, 'call')
  return (
    <Dialog title={`Decide ${counted(lines.length, 'call')}`} close={close}>
      <Scrollable as="ol" class="decided-together" label="Calls">
        {lines.map((line) => (
          <Chosen key={line.id} line={line} pause={shown(line)} problem={problems.value.get(line.id)} />
        ))}
      </Scrollable>
      {state === 'done' ? (
        <p role="status">{summaryOf(lines, shown)}</p>
      ) : (
        <TextField
          label="Comment"
          rows={2}
          placeholder="optional; stored with each, and sent to the agent with a rejection"
          value={comment}
          set={setComment}
        />
      )}
      <div class="actions" ref={foot}>
        {state === 'done' ? (
          <Button class="primary" text="Close" onClick={close} />
        ) : (
          (['approve', 'reject'] as const).map((action) => (
            <Button
              key={action}
              needs="approver"
              class={action === 'approve' ? 'primary' : ''}
              text={`${action === 'approve' ? 'Approve' : 'Reject'} ${calls}`}
              disabled={state !== 'ready' || open.length === 0}
              onClick={() => void decide(action)}
            />
          ))
        )}
      </div>
    </Dialog>
  )
}

interface ChosenProps {
  readonly line: PauseLine
  /** Undefined until the pause has been read. */
  readonly pause: Approval | undefined
  readonly problem: string | undefined
}

function Chosen({ line, pause, problem }: ChosenProps) {
  const name = useSession().directory.nameOf(line.agent_id)
  return (
    <li>
      <div class="detail-head">
        <h3>
          {name}: <code class="strong">{line.tool}</code>
        </h3>
        {pause !== undefined && pause.status !== 'pending' && <Status name={pause.status} />}
        <a href={hrefOfRun(line.run_id)}>run …{line.run_id.slice(-8)}</a>
        {line.external_user_id !== null && <span class="hint">for {line.external_user_id}</span>}
      </div>
      {problem !== undefined && <p class="problem">{problem}</p>}
      {pause === undefined ? problem === undefined && <Skeleton /> : <Question pause={pause} />}
    </li>
  )
}

/** `2 approved, 1 rejected`: the calls by status. */
function summaryOf(lines: readonly PauseLine[], shown: (line: PauseLine) => Approval | undefined): string {
  const groups = Map.groupBy(lines, (line) => shown(line)?.status ?? 'not read')
  return `${[...groups].map(([status, { length }]) => `${length} ${status}`).join(', ')}.`
}
