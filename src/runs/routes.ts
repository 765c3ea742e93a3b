import { Elysia } from 'elysia'
import type { Guards } from '../keys/guards.ts'
import type { EventReader } from './events.ts'
import {
  CancelRun,
  CompleteRun,
  EventPage,
  FailRun,
  ListChildren,
  ListEvents,
  ListRuns,
  RunEnded,
  RunPage,
  RunParams,
  RunRecord,
  RunStarted,
  StartRun,
} from './schema.ts'
import type { RunStore } from './store.ts'

export interface RunRoutesDeps {
  readonly guards: Guards
  readonly runs: RunStore
  readonly events: EventReader
}

/** Runs: reported by agents, read and cancelled by anyone with a key (docs/specification.md#runs). */
export function runRoutes(deps: RunRoutesDeps) {
  return new Elysia().use(ingestRoutes(deps)).use(readingRoutes(deps))
}

function ingestRoutes({ guards, runs }: RunRoutesDeps) {
  const tags = ['Ingest']
  return new Elysia({ prefix: '/api/ingest/v1' })
    .use(guards.ingest)
    .post('/run/start', ({ caller, body, mint }) => runs.start(caller, body, mint), {
      body: StartRun,
      response: RunStarted,
      detail: { tags, summary: 'Start a run' },
    })
    .post('/run/complete', ({ caller, body }) => runs.complete(caller, body), {
      body: CompleteRun,
      response: RunEnded,
      detail: { tags, summary: 'Complete a run; again: `already`; after another ending: CONFLICT' },
    })
    .post('/run/fail', ({ caller, body }) => runs.fail(caller, body), {
      body: FailRun,
      response: RunEnded,
      detail: { tags, summary: 'Fail a run; again: `already`; after another ending: CONFLICT' },
    })
}

function readingRoutes({ guards, runs, events }: RunRoutesDeps) {
  const tags = ['Runs']
  return new Elysia({ prefix: '/api/v1' })
    .use(guards.anyKey('reads'))
    .get('/runs', ({ caller, query }) => runs.list(caller, query), {
      query: ListRuns,
      response: RunPage,
      detail: {
        tags,
        summary: 'List runs, newest first',
        description: 'Conditions are joined by AND. `from` is included, `to` is not; both bound `created_at`.',
      },
    })
    .get('/runs/:runId', ({ caller, params }) => runs.get(caller, params.runId), {
      params: RunParams,
      response: RunRecord,
      detail: { tags, summary: 'Read a run' },
    })
    .get(
      '/runs/:runId/events',
      async ({ caller, params, query }) => events.list(await runs.find(caller, params.runId), query),
      {
        params: RunParams,
        query: ListEvents,
        response: EventPage,
        detail: {
          tags,
          summary: 'Read the events of a run, oldest first',
          description:
            'Holds every event acknowledged before the call. Unlike other lists it is read forwards: `next_cursor` is ' +
            'the `after_seq` of the next page. `level` is a minimum, `type` takes a trailing `*`.',
        },
      },
    )
    .get('/runs/:runId/children', ({ caller, params, query }) => runs.children(caller, params.runId, query), {
      params: RunParams,
      query: ListChildren,
      response: RunPage,
      detail: { tags, summary: 'List the runs that name this one as their parent, newest first' },
    })
    .post('/runs/:runId/cancel', ({ caller, params, body }) => runs.cancel(caller, params.runId, body), {
      params: RunParams,
      body: CancelRun,
      response: RunEnded,
      detail: { tags, summary: 'Cancel a run; again: `already`; after another ending: CONFLICT' },
    })
}
