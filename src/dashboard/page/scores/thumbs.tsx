import { createContext } from 'preact'
import { useContext, useState } from 'preact/hooks'
import { useSession } from '../context/session.ts'
import { useAttempt } from '../data/loading.ts'
import type { Score } from '../data/records.ts'
import { Button, Dialog } from '../parts/controls.tsx'
import { TextField } from '../parts/fields.tsx'
import { Form, useForm } from '../parts/form.tsx'
import { ProblemText } from '../parts/states.tsx'
import { SCORER, type Scored, type Thumb, thumbCounts, thumbId, thumbOf, thumbScore } from './score.ts'

/** The scores of the run that is shown. */
interface RunScores {
  readonly runId: string
  readonly scores: { readonly value: ReadonlyMap<string, Score> }
  /** Reads the scores again. */
  readonly reloadScores: () => Promise<void>
}

/** Null outside of the page of a run. */
export const ScoredRun = createContext<RunScores | null>(null)

const COMMENT_LENGTH_MAX = 10_000

interface ThumbsProps {
  readonly of: Scored
  /** What is scored, as in "Good answer". */
  readonly noun: string
}

/** Thumbs up and down with a comment. The same button again takes the thumb back. */
export function Thumbs({ of, noun }: ThumbsProps) {
  const run = useContext(ScoredRun)
  return run === null ? null : <RunThumbs run={run} of={of} noun={noun} />
}

function RunThumbs({ run, of, noun }: ThumbsProps & { readonly run: RunScores }) {
  const { api, person } = useSession()
  const [isCommenting, setCommenting] = useState(false)
  const { problem, attempt } = useAttempt()
  const scores = run.scores.value
  const mine = thumbOf(scores.get(thumbId(person, of)))
  const counts = thumbCounts(scores.values(), of)
  const give = async (thumb: Thumb) => {
    await api.post(`/api/v1/runs/${run.runId}/scores`, thumbScore(person, of, thumb))
    // The feed brings it, too, but may be interrupted.
    await run.reloadScores()
  }
  const choose = (isUp: boolean) =>
    attempt(() => give(mine.isUp === isUp ? { isUp: null, comment: '' } : { isUp, comment: mine.comment }))
  const button = (isUp: boolean, count: number) => {
    const label = `${isUp ? 'Good' : 'Bad'} ${noun}`
    const isMine = mine.isUp === isUp
    return (
      <Button
        needs={SCORER}
        class="small quiet thumb"
        icon={isUp ? 'thumb-up' : 'thumb-down'}
        text={count > 0 ? String(count) : undefined}
        label={count > 0 ? `${label}, ${count}` : label}
        title={isMine ? 'Take it back' : label}
        aria-pressed={isMine}
        onClick={() => choose(isUp)}
      />
    )
  }
  return (
    <fieldset class="thumbs" aria-label={`Feedback on the ${noun}`}>
      {button(true, counts.up)}
      {button(false, counts.down)}
      {mine.isUp !== null && (
        <Button
          needs={SCORER}
          class="small quiet"
          text={mine.comment === '' ? 'Add a comment' : 'Edit the comment'}
          onClick={() => setCommenting(true)}
        />
      )}
      <ProblemText text={problem} />
      {isCommenting && <CommentDialog thumb={mine} give={give} close={() => setCommenting(false)} />}
    </fieldset>
  )
}

interface CommentDialogProps {
  readonly thumb: Thumb
  readonly give: (thumb: Thumb) => Promise<void>
  readonly close: () => void
}

function CommentDialog({ thumb, give, close }: CommentDialogProps) {
  const form = useForm({ comment: thumb.comment })
  const save = async () => {
    await give({ ...thumb, comment: form.draft.comment.trim() })
    close()
  }
  return (
    <Dialog title="Comment" close={close}>
      <Form form={form} submit={save} action="Save" foot={<Button text="Close" onClick={close} />}>
        <TextField {...form.field('comment')} label="What was good or bad?" rows={4} maxLength={COMMENT_LENGTH_MAX} />
      </Form>
    </Dialog>
  )
}
