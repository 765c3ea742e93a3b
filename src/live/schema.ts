import { t } from 'elysia'
import { LEVELS } from '../events/schema.ts'
import { Uuid } from '../http/schema.ts'

/**
 * Queries of the event streams (docs/specification.md#feeds). Read by `routes.ts` and `filter.ts`; here for the
 * documentation.
 */

const resume = {
  after: t.Optional(
    t.String({
      description:
        'Resume after this cursor; 0: from the beginning of retention. A `Last-Event-ID` header goes before it. ' +
        'Otherwise the stream begins with what happens from now on.',
    }),
  ),
  token: t.Optional(t.String({ description: 'A feed token, for browsers; instead of the Authorization header.' })),
}

const repeatable = 'Repeatable: any of the values may match.'

export const StreamQuery = t.Object({
  agent_id: t.Optional(t.Array(Uuid, { description: repeatable })),
  run_id: t.Optional(t.Array(Uuid, { description: repeatable })),
  kind: t.Optional(t.Array(t.UnionEnum(['event', 'task', 'run'], { default: undefined }))),
  type: t.Optional(t.Array(t.String(), { description: 'Events only. Takes a trailing `*`. Repeatable.' })),
  level: t.Optional(t.UnionEnum(LEVELS, { default: undefined, description: 'Events only: this level or higher.' })),
  status: t.Optional(t.Array(t.String(), { description: 'Runs and tasks only. Repeatable.' })),
  tag: t.Optional(t.Array(t.String(), { description: 'Runs only: any of the tags. Repeatable.' })),
  ...resume,
})

export const RunStreamQuery = t.Object(resume)
