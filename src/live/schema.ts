import { t } from 'elysia'
import { LEVELS } from '../events/schema.ts'
import { Uuid } from '../http/schema.ts'

/** Query parameters of the event streams (docs/specification.md#feeds), for the documentation; `routes.ts` and `filter.ts` parse them. */

const resume = {
  after: t.Optional(
    t.String({
      description:
        'Resume after this cursor; 0: from the oldest retained activity. A `Last-Event-ID` header takes precedence. ' +
        'Without either, the stream starts with new activity.',
    }),
  ),
  token: t.Optional(t.String({ description: 'A feed token, for browsers; replaces the Authorization header.' })),
}

const repeatable = 'Repeatable; matches any of the values.'

export const StreamQuery = t.Object({
  agent_id: t.Optional(t.Array(Uuid, { description: repeatable })),
  run_id: t.Optional(t.Array(Uuid, { description: repeatable })),
  kind: t.Optional(t.Array(t.UnionEnum(['event', 'task', 'run'], { default: undefined }))),
  type: t.Optional(t.Array(t.String(), { description: 'Events only. A trailing `*` matches a prefix. Repeatable.' })),
  level: t.Optional(t.UnionEnum(LEVELS, { default: undefined, description: 'Events only: this level or higher.' })),
  status: t.Optional(t.Array(t.String(), { description: 'Runs and tasks only. Repeatable.' })),
  tag: t.Optional(t.Array(t.String(), { description: 'Runs only. Repeatable; matches any of the tags.' })),
  ...resume,
})

export const RunStreamQuery = t.Object(resume)
