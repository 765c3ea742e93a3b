import type { Api } from '../support/api.ts'
import { type Activity, newReporter } from '../support/feeds.ts'

/** A feed filter and the activities it matches. */
export interface FilterCase {
  readonly name: string
  readonly filter: Readonly<Record<string, string | readonly string[]>>
  readonly matches: (activity: Activity) => boolean
}

export interface FilterScenario {
  readonly cases: readonly FilterCase[]
  /** Reports everything. @returns the number of activities */
  play(): Promise<number>
}

const LEVELS = ['debug', 'info', 'warn', 'error']

/** Two agents and three runs whose activity has every value that a filter can match. Reports nothing yet. */
export async function newFilterScenario(api: Api): Promise<FilterScenario> {
  const [a, b] = [await newReporter(api), await newReporter(api)]
  const runIds = Array.from({ length: 3 }, () => Bun.randomUUIDv7())

  async function play(): Promise<number> {
    const [first, second, third] = runIds
    await a.start({ run_id: first, tags: ['prod', 'eu'] })
    await b.start({ run_id: second, tags: ['prod'] })
    await a.start({ run_id: third })
    await a.events(first, [
      { type: 'llm.call', level: 'debug' },
      { type: 'llm.call.done', level: 'info' },
      { type: 'llm', level: 'warn' },
      { type: 'tool.started', level: 'error' },
      { type: 'LLM.call', level: 'info' },
    ])
    await b.events(second, [
      { type: 'llm.call', level: 'error' },
      { type: 'tool.started', level: 'debug' },
      { type: 'a*b', level: 'warn' },
    ])
    await a.events(third, [
      { type: 'Größe 📏', level: 'info' },
      { type: 'llm.call', level: 'warn' },
    ])
    const task = crypto.randomUUID()
    for (const status of ['pending', 'running', 'completed']) await a.task(first, { id: task, status })
    await b.task(second, { status: 'failed' })
    await a.task(third, { status: 'skipped' })
    await a.end(first)
    await b.end(second, 'it broke')
    await api('POST', `/api/v1/runs/${third}/cancel`, {})
    return 21
  }

  return { cases: casesOf([a.agentId, b.agentId], runIds), play }
}

function casesOf(agentIds: readonly string[], runIds: readonly string[]): FilterCase[] {
  const [a, b] = agentIds
  const [first, second, third] = runIds
  const is = (name: string, filter: FilterCase['filter'], matches: FilterCase['matches']) => ({ name, filter, matches })
  const typeOf = ({ event }: Activity) => event?.type
  const rankOf = ({ event }: Activity) => LEVELS.indexOf(event?.level ?? '')
  const statusOf = ({ task, run }: Activity) => (task ?? run)?.status
  const hasTag = ({ run }: Activity, tag: string) => (run?.tags as string[] | undefined)?.includes(tag) === true
  return [
    is('no condition', {}, () => true),
    is('an agent', { agent_id: a }, ({ agent_id }) => agent_id === a),
    is('an agent in upper case', { agent_id: b.toUpperCase() }, ({ agent_id }) => agent_id === b),
    is('either agent', { agent_id: [a, b] }, () => true),
    is('an unknown agent', { agent_id: crypto.randomUUID() }, () => false),
    is('a run', { run_id: second }, ({ run_id }) => run_id === second),
    is('one of two runs', { run_id: [third, first] }, ({ run_id }) => run_id !== second),
    is('a run of another agent', { agent_id: a, run_id: second }, () => false),
    is('events', { kind: 'event' }, ({ kind }) => kind === 'event'),
    is('tasks', { kind: 'task' }, ({ kind }) => kind === 'task'),
    is('runs', { kind: 'run' }, ({ kind }) => kind === 'run'),
    is('two kinds', { kind: ['task', 'run'] }, ({ kind }) => kind !== 'event'),
    is('a type', { type: 'llm.call' }, (each) => typeOf(each) === 'llm.call'),
    is('a prefix of a type without a star', { type: 'llm.c' }, () => false),
    is('a type with non-ASCII characters', { type: 'Größe 📏' }, (each) => typeOf(each) === 'Größe 📏'),
    is('a type prefix', { type: 'llm.call*' }, (each) => typeOf(each)?.startsWith('llm.call') === true),
    is('any type', { type: '*' }, ({ kind }) => kind === 'event'),
    is('a prefix of a type that contains a star', { type: 'a*' }, (each) => typeOf(each) === 'a*b'),
    is('types and prefixes', { type: ['llm', 'tool.*'] }, (each) => /^(llm|tool\..*)$/.test(typeOf(each) ?? '')),
    ...LEVELS.map((level, rank) => is(`level ${level}`, { level }, (each) => rankOf(each) >= rank)),
    is('the lower of two levels', { level: ['error', 'warn'] }, (each) => rankOf(each) >= 2),
    is('a status of runs and tasks', { status: 'completed' }, (each) => statusOf(each) === 'completed'),
    is('a status of runs', { status: 'cancelled' }, (each) => statusOf(each) === 'cancelled'),
    is('statuses', { status: ['failed', 'skipped'] }, (each) => /failed|skipped/.test(`${statusOf(each)}`)),
    is('a status, of tasks only', { status: 'running', kind: 'task' }, (each) => each.task?.status === 'running'),
    is('a tag', { tag: 'prod' }, (each) => hasTag(each, 'prod')),
    is('one of two tags', { tag: ['eu', 'nowhere'] }, (each) => hasTag(each, 'eu')),
    is('a tag and a status', { tag: 'prod', status: 'failed' }, ({ run }) => run?.status === 'failed'),
    is(
      'every condition on events',
      { agent_id: [a, b], run_id: [first, second], kind: ['event', 'run'], type: ['tool.*', 'llm*'], level: 'warn' },
      (each) => each.run_id !== third && /^(tool\.|llm)/.test(typeOf(each) ?? '') && rankOf(each) >= 2,
    ),
  ]
}
