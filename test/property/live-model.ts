import { RUN_STATUSES } from '../../src/activity/runs/state.ts'
import { TASK_STATUSES } from '../../src/activity/tasks/state.ts'
import type { Journal } from '../../src/stores/journal/journal.ts'
import type { ActivityKind } from '../../src/stores/journal/kinds.ts'
import { LEVELS } from '../../src/stores/journal/levels.ts'
import { batchOf, runRef } from '../support/events.ts'
import type { Random } from '../support/random.ts'
import { runRow, taskRow } from '../support/rows.ts'

/** The properties of one acknowledged activity that a filter may test. */
export interface Fact {
  readonly seq: number
  readonly kind: ActivityKind
  readonly workspaceId: string
  readonly agentId: string
  readonly runId: string
  readonly type?: string
  readonly level?: Level
  readonly status?: string
  readonly tags?: readonly string[]
}

/** A filter as a client sends it. */
export type Wanted = { readonly [field in Field]?: string | readonly string[] }

type Field = 'agent_id' | 'run_id' | 'kind' | 'type' | 'level' | 'status' | 'tag'
type Level = (typeof LEVELS)[number]
type Run = ReturnType<typeof runRef>

const KINDS = ['event', 'task', 'run'] as const
const TYPES = ['llm.call', 'llm.call.failed', 'tool.call', 'tool', 'étape "1"', 's']
const TYPE_PATTERNS = [...TYPES, '*', 'llm.*', 'llm.call*', 'tool*', 'é*', 'none*']
const TAGS = ['a', 'b', "it's"]

/** A workload that reports at random, and the list of all acknowledged activities. */
export class Workload {
  readonly workspaces: readonly string[]
  /** In order of position. */
  readonly facts: Fact[] = []
  private readonly runs: readonly Run[]

  constructor(private readonly random: Random) {
    this.workspaces = [runRef().workspaceId, runRef().workspaceId]
    this.runs = this.workspaces.flatMap((workspaceId) =>
      [0, 1].flatMap(() => {
        const { agentId } = runRef()
        return [0, 1, 2].map(() => ({ ...runRef(), workspaceId, agentId }))
      }),
    )
  }

  /** Makes some calls at once, so that they share commits. */
  async report(journal: Journal): Promise<void> {
    const { random } = this
    const calls = Array.from({ length: random.int(1, 6) }, () => {
      const kind = random.next()
      if (kind < 0.6)
        return this.events(journal, random.pick(this.runs), random.int(1, 8), 'x'.repeat(random.int(0, 200)))
      return kind < 0.8 ? this.tasks(journal) : this.changes(journal)
    })
    await Promise.all(calls)
    this.facts.sort((a, b) => a.seq - b.seq)
  }

  /** Reports more than a Unix socket and the queue of a stalled client can hold. */
  async flood(journal: Journal, workspaceId: string): Promise<void> {
    const run = this.random.pick(this.runs.filter((run) => run.workspaceId === workspaceId))
    for (let i = 0; i < 4; i++) await this.events(journal, run, 5, 'x'.repeat(40_000))
    this.facts.sort((a, b) => a.seq - b.seq)
  }

  /** A filter that something may match. */
  filter(workspaceId: string): Wanted {
    const { random } = this
    const runs = this.runs.filter((run) => run.workspaceId === workspaceId || random.bool(0.1))
    const some = (from: readonly string[]) =>
      random.bool() ? random.pick(from) : Array.from({ length: random.int(1, 3) }, () => random.pick(from))
    const maybe = (field: Wanted, probability = 0.4) => (random.bool(probability) ? field : {})
    const shape = random.pick<Wanted>([
      maybe({ kind: some(KINDS) }),
      { ...maybe({ type: some(TYPE_PATTERNS) }), ...maybe({ level: some(LEVELS) }) },
      maybe({ status: some([...TASK_STATUSES, ...RUN_STATUSES]) }),
      { tag: some(TAGS), ...maybe({ status: some(RUN_STATUSES) }) },
    ])
    return {
      ...shape,
      ...maybe({ agent_id: some(runs.map(({ agentId }) => agentId)) }, 0.2),
      ...maybe({ run_id: some(runs.map(({ runId }) => runId)) }, 0.2),
    }
  }

  private async events(journal: Journal, run: Run, count: number, filling: string): Promise<void> {
    const { random } = this
    const events = Array.from({ length: count }, () => ({
      type: random.pick(TYPES),
      level: random.pick(LEVELS),
      payload: { filling },
    }))
    const { firstSeq } = await journal.appendEvents(batchOf(run, events))
    events.forEach(({ type, level }, i) => {
      this.facts.push({ ...run, kind: 'event', seq: firstSeq + i, type, level })
    })
  }

  private async tasks(journal: Journal): Promise<void> {
    const { random } = this
    const rows = Array.from({ length: random.int(1, 3) }, () => ({
      run: random.pick(this.runs),
      status: random.pick(TASK_STATUSES),
    }))
    const { firstSeq } = await journal.appendTasks(
      rows.map(({ run, status }) => taskRow(run, { status })),
      [],
    )
    rows.forEach(({ run, status }, i) => {
      this.facts.push({ ...run, kind: 'task', seq: firstSeq + i, status })
    })
  }

  private async changes(journal: Journal): Promise<void> {
    const { random } = this
    const rows = Array.from({ length: random.int(1, 3) }, () => ({
      run: random.pick(this.runs),
      status: random.pick(RUN_STATUSES),
      tags: TAGS.filter(() => random.bool(0.4)),
    }))
    const { firstSeq } = await journal.appendRuns(
      rows.map(({ run, ...rest }) => runRow(run, rest)),
      [],
    )
    rows.forEach(({ run, ...rest }, i) => {
      this.facts.push({ ...run, kind: 'run', seq: firstSeq + i, ...rest })
    })
  }
}

/** Whether a feed with this filter must show the fact: implemented independently of the service. */
export function shows(wanted: Wanted, fact: Fact): boolean {
  const level = fact.level
  return (
    among(wanted.agent_id, (id) => id === fact.agentId) &&
    among(wanted.run_id, (id) => id === fact.runId) &&
    among(wanted.kind, (kind) => kind === fact.kind) &&
    among(wanted.status, (status) => status === fact.status) &&
    among(wanted.tag, (tag) => fact.tags?.includes(tag) === true) &&
    among(wanted.level, (least) => level !== undefined && LEVELS.indexOf(level) >= LEVELS.indexOf(least as Level)) &&
    among(wanted.type, (type) =>
      type.endsWith('*') ? fact.type?.startsWith(type.slice(0, -1)) === true : type === fact.type,
    )
  )
}

function among(values: string | readonly string[] | undefined, fits: (value: string) => boolean): boolean {
  return values === undefined || [values].flat().some((value) => fits(value as string))
}
