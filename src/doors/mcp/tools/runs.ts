import { t } from 'elysia'
import { type ListedRun, RunStatus } from '../../../activity/runs/schema.ts'
import type { RunSearch } from '../../../activity/runs/search/run-search.ts'
import type { RunStore } from '../../../activity/runs/store.ts'
import { shortened } from '../../../base/code-points.ts'
import { Body, Described, Int, Text, Uuid } from '../../../base/http/schema.ts'
import { RawJson } from '../../../base/raw-json.ts'
import { type OwnTool, ownTool } from './tool.ts'

const LIMIT_DEFAULT = 20
const LIMIT_MAX = 50
/** A free-form member of a run that is longer is cut. */
const MEMBER_LENGTH_MAX = 16 * 1024
const BEGINNING_LENGTH = 2_000

const SearchInput = Body({
  q: t.Optional(Text({ minLength: 1, maxLength: 500, description: 'Words or "phrases" that occur in the run.' })),
  agent_id: t.Optional(Described(Uuid, 'Runs of this agent.')),
  status: t.Optional(RunStatus),
  session_id: t.Optional(Text({ maxLength: 2_000, description: 'Runs of this session.' })),
  limit: t.Optional(Int({ minimum: 1, maximum: LIMIT_MAX, description: `Default ${LIMIT_DEFAULT}.` })),
  cursor: t.Optional(Text({ maxLength: 500, description: '`next_cursor` of the previous page.' })),
})

const GetInput = Body({ run_id: Described(Uuid, 'The run.') })

const OutputOfSearch = t.Object({
  runs: t.Array(t.Object({ run_id: t.String(), status: t.String() }, { additionalProperties: true })),
  next_cursor: t.Union([t.String(), t.Null()]),
})

interface RunToolsDeps {
  readonly runs: Pick<RunStore, 'list' | 'get'>
  readonly search: Pick<RunSearch, 'list'>
}

/** Runs, as `GET /api/v1/runs` and `GET /api/v1/runs/:run_id` answer them. */
export function runTools({ runs, search }: RunToolsDeps): OwnTool[] {
  return [
    ownTool({
      name: 'search_runs',
      title: 'Search runs',
      description:
        'Runs, newest first, without their inputs and outputs: by agent, status or session, or by words that occur in them. ' +
        'For counts and statistics use query.',
      input: SearchInput,
      outputSchema: OutputOfSearch,
      annotations: { readOnlyHint: true, openWorldHint: false },
      audience: 'any',
      run: async ({ caller, signal }, { status, limit = LIMIT_DEFAULT, ...query }) => {
        const page = await search.list(caller, { ...query, limit, ...(status && { status: [status] }) }, signal)
        return { runs: page.items.map(summaryOf), next_cursor: page.next_cursor }
      },
    }),
    ownTool({
      name: 'get_run',
      title: 'Read a run',
      description:
        'One run: its state, input, output, error, usage, and what it waits for. Long members are shortened; its events and tasks ' +
        'are in the tables of query.',
      input: GetInput,
      annotations: { readOnlyHint: true, openWorldHint: false },
      audience: 'any',
      run: async ({ caller }, { run_id }) => ({ run: withoutLongMembers(await runs.get(caller, run_id)) }),
    }),
  ]
}

function summaryOf({ error_detail: _detail, metadata: _metadata, ...run }: ListedRun) {
  return { ...run, error_message: run.error_message && shortened(run.error_message, BEGINNING_LENGTH) }
}

/** A record with free-form members that a model can read: of a long one only the beginning, as text. */
export function withoutLongMembers<T extends object>(record: T): T {
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) => {
      if (typeof value === 'string') return [name, shortened(value, MEMBER_LENGTH_MAX)]
      const text = value instanceof RawJson ? value.text : ''
      if (text.length <= MEMBER_LENGTH_MAX) return [name, value]
      return [name, { truncated: true, characters: text.length, beginning: shortened(text, BEGINNING_LENGTH) }]
    }),
  ) as T
}
