import { useEffect, useRef } from 'preact/hooks'
import { hrefOf, hrefOfRun } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Activity } from '../data/records.ts'
import { Json } from '../parts/code.tsx'
import { CopyButton, type IconName } from '../parts/controls.tsx'
import { Facts } from '../parts/states.tsx'
import { ClockTime, Moment } from '../parts/time.tsx'

type LineKind = 'model' | 'tool' | 'person' | 'event' | 'task' | 'run' | 'score'

/** Kinds of lines have a shape and a word each, so that colour is never the only sign. */
export const LINE_ICONS: Readonly<Record<LineKind, IconName>> = {
  model: 'model',
  tool: 'tool',
  person: 'person',
  event: 'event',
  task: 'task',
  run: 'runs',
  score: 'scores',
}

/** What an activity is about, by the type of its event. */
export function kindOf({ event, task, score }: Pick<Activity, 'event' | 'task' | 'score'>): LineKind {
  if (score !== undefined) return 'score'
  if (event === undefined) return task === undefined ? 'run' : 'task'
  if (/^(llm|gen_ai|model)\b/.test(event.type)) return 'model'
  if (/^tool\b/.test(event.type)) return 'tool'
  return /^(approval|input)\./.test(event.type) ? 'person' : 'event'
}

/** A line in full, below it: its times, run and agent, and what it says. @param height in pixels, within which it scrolls */
export function LineDetail({ line, height }: { readonly line: Activity; readonly height: number }) {
  const { directory } = useSession()
  const { event, task, run, score, run_id, agent_id } = line
  const element = useRef<HTMLDivElement>(null)
  useEffect(() => element.current?.scrollIntoView({ block: 'nearest' }), [])
  return (
    <div ref={element} class="tail-detail" style={{ height: `${height}px` }}>
      <Facts
        facts={[
          [
            'Run',
            run_id !== null && (
              <span key="run" class="id">
                <a href={hrefOfRun(run_id, linkOf(line))}>…{run_id.slice(-8)}</a>
                <CopyButton text={() => run_id} label="Copy run id" />
              </span>
            ),
          ],
          [
            'Agent',
            agent_id !== null && (
              <a key="agent" href={hrefOf('agents', [agent_id])}>
                {directory.nameOf(agent_id)}
              </a>
            ),
          ],
          ['Received', <Moment key="received" at={line.received_at} />],
          ['Occurred', event && <ClockTime at={event.occurred_at} />],
          ['Position', event && String(event.seq)],
        ]}
      />
      {(task ?? run)?.error_message && <p class="problem">{(task ?? run)?.error_message}</p>}
      {event !== undefined && <Json title="Payload" value={event.payload} />}
      {task !== undefined && <Json title="Task" value={task} />}
      {run !== undefined && <Json title="Run" value={run} />}
      {score !== undefined && <Json title="Score" value={score} />}
    </div>
  )
}

/** The step of the run that the line is about. */
function linkOf({ event, task, score }: Activity): Record<string, string> {
  if (score !== undefined) return { tab: 'scores' }
  if (event !== undefined) return { event: String(event.seq) }
  return task === undefined ? {} : { task: task.id }
}
