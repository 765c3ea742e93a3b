import { Elysia } from 'elysia'
import { ifMatch, VERSIONED, versioned } from '../../base/http/version.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import type { ConversationReader } from './conversation/reader.ts'
import { ConversationPage, ReadConversation } from './conversation/schema.ts'
import type { EventReader } from './events.ts'
import {
  CancelRun,
  CompleteRun,
  EditRun,
  EventPage,
  FailRun,
  ListChildren,
  ListEvents,
  ListRuns,
  RunEnded,
  RunList,
  RunPage,
  RunParams,
  RunRecord,
  RunStarted,
  StartRun,
} from './schema.ts'
import type { RunSearch } from './search/run-search.ts'
import type { RunStore } from './store.ts'

interface RunRoutesDeps {
  readonly guards: Guards
  readonly runs: RunStore
  readonly events: EventReader
  readonly conversations: ConversationReader
  readonly search: RunSearch
}

/** Runs: reported by agents, read and cancelled by anyone with a key (docs/runs.md). */
export function runRoutes(deps: RunRoutesDeps) {
  const calls = new Elysia().use(readingRoutes(deps)).use(cancelRoute(deps))
  return new Elysia().use(ingestRoutes(deps)).use(calls)
}

function ingestRoutes({ guards, runs }: RunRoutesDeps) {
  return new Elysia({ prefix: '/api/ingest/v1', detail: { tags: ['Ingest'], security: SECURITY.agentKey } })
    .use(guards.ingest)
    .post('/run/start', ({ caller, body, mint }) => runs.start(caller, body, mint), {
      body: StartRun,
      response: RunStarted,
      detail: {
        operationId: 'startRun',
        summary: 'Start a run',
        description:
          'Only for external agents. With a `run_id` chosen by the caller, the request can be retried safely.',
        errors: ['NOT_FOUND'],
      },
    })
    .post('/run/complete', ({ caller, body }) => runs.complete(caller, body), {
      body: CompleteRun,
      response: RunEnded,
      detail: {
        operationId: 'completeRun',
        summary: 'Complete a run',
        description: 'A repeat returns `already: true`. A run that ended with another status is a CONFLICT.',
        errors: ['NOT_FOUND'],
      },
    })
    .post('/run/fail', ({ caller, body }) => runs.fail(caller, body), {
      body: FailRun,
      response: RunEnded,
      detail: {
        operationId: 'failRun',
        summary: 'Fail a run',
        description: 'A repeat returns `already: true`. A run that ended with another status is a CONFLICT.',
        errors: ['NOT_FOUND'],
      },
    })
}

const READ_CONVERSATION = {
  operationId: 'readConversation',
  summary: 'Read the conversation of a run',
  description:
    'The messages of its model calls and its tool calls, whatever format they were reported in, oldest first and ' +
    'each once: what a call of a model is sent again is left out. A page may have fewer messages than asked for, ' +
    'or none, while `next_cursor` says that more may follow. Long texts and values are shortened.',
}

function readingRoutes({ guards, runs, events, conversations, search }: RunRoutesDeps) {
  return new Elysia({ prefix: '/api/v1', detail: { tags: ['Runs'], security: SECURITY.anyKey, ...VERSIONED } })
    .use(guards.anyKey('reads', 'admin'))
    .use(versioned)
    .get('/runs', ({ caller, query, request }) => search.list(caller, query, request.signal), {
      query: ListRuns,
      response: RunList,
      detail: {
        operationId: 'listRuns',
        summary: 'List runs',
        description:
          'Conditions are combined with AND. `from` (inclusive) and `to` (exclusive) bound `created_at`. `q` searches ids ' +
          '(also their beginnings), tags, the name of the agent, errors, inputs, outputs, metadata, tasks, and payloads ' +
          'of events, in either case: each word as a whole; in quotation marks, or with marks inside, as it is written. ' +
          'All of it has to be in the run itself, in one task, or in one event. What was accepted a moment ago is found ' +
          'within a second or so. Runs have one line of their input and output; `include=input,output` adds all of it.',
      },
    })
    .get('/runs/:run_id', ({ caller, params }) => runs.get(caller, params.run_id), {
      params: RunParams,
      response: RunRecord,
      detail: {
        operationId: 'getRun',
        summary: 'Read a run',
        description: 'The current state of the run, with its input and output.',
      },
    })
    .patch(
      '/runs/:run_id',
      ({ caller, params, body, request }) => runs.edit(caller, params.run_id, body, ifMatch(request)),
      {
        params: RunParams,
        body: EditRun,
        response: RunRecord,
        detail: {
          operationId: 'editRun',
          summary: 'Edit a run',
          description: 'Replaces the tags or the metadata of a run, also of one that has ended.',
        },
      },
    )
    .get(
      '/runs/:run_id/events',
      async ({ caller, params, query }) => events.list(caller, await runs.find(caller, params.run_id), query),
      {
        params: RunParams,
        query: ListEvents,
        response: EventPage,
        detail: {
          operationId: 'listEvents',
          summary: 'Read the events of a run',
          description:
            'Includes every event acknowledged before the call. Unlike other lists, oldest first: `next_cursor` is ' +
            'the `after_seq` of the next page. `level` is a minimum, `type` takes a trailing `*`.',
        },
      },
    )
    .get(
      '/runs/:run_id/conversation',
      ({ caller, params, query }) => conversations.list(caller, params.run_id, query),
      {
        params: RunParams,
        query: ReadConversation,
        response: ConversationPage,
        detail: READ_CONVERSATION,
      },
    )
    .get('/runs/:run_id/children', ({ caller, params, query }) => runs.children(caller, params.run_id, query), {
      params: RunParams,
      query: ListChildren,
      response: RunPage,
      detail: {
        operationId: 'listChildren',
        summary: 'List the child runs of a run',
        description: 'The runs that name it as their parent, newest first.',
      },
    })
}

function cancelRoute({ guards, runs }: RunRoutesDeps) {
  return new Elysia({ prefix: '/api/v1', detail: { tags: ['Runs'], security: SECURITY.anyKey } })
    .use(guards.anyKey('reads', 'approver'))
    .post('/runs/:run_id/cancel', ({ caller, params, body }) => runs.cancel(caller, params.run_id, body), {
      params: RunParams,
      body: CancelRun,
      response: RunEnded,
      detail: {
        operationId: 'cancelRun',
        summary: 'Cancel a run',
        description: 'A repeat returns `already: true`. A run that ended with another status is a CONFLICT.',
      },
    })
}
