import { Elysia, t } from 'elysia'
import { invalid, invalidAll } from '../../base/errors.ts'
import { bearerToken } from '../../base/http/bearer.ts'
import type { BodyReader } from '../../base/http/body.ts'
import type { BodyHold } from '../../base/http/body-budget.ts'
import { parseJson } from '../../base/http/json-reader.ts'
import { OneOf, PageQuery } from '../../base/http/schema.ts'
import type { Limits } from '../../base/limits.ts'
import { RawJson } from '../../base/raw-json.ts'
import type { Idempotency } from '../../stores/idempotency/store.ts'
import type { Sql } from '../../stores/postgres/connect.ts'
import type { Forwarder } from '../../tenants/keys/forward.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import { isFeedToken } from '../../tenants/keys/token.ts'
import { RunParams } from '../runs/schema.ts'
import { scoreProblems } from './problem.ts'
import type { ScoreReader } from './reader.ts'
import { AddScores, NewRunScore, type NewScore, ScorePage, ScoresAccepted } from './schema.ts'
import type { Scores } from './scores.ts'
import { scoreOfToken, takeScoreOfToken } from './token-scores.ts'

interface ScoreRoutesDeps {
  readonly guards: Guards
  readonly reader: BodyReader
  readonly idempotency: Idempotency
  readonly forwarder: Forwarder
  readonly limits: Limits
  readonly sql: Sql
  readonly scores: Scores
  readonly scoreReader: ScoreReader
}

/** Scores of runs (docs/scores.md). */
export function scoreRoutes(deps: ScoreRoutesDeps) {
  return new Elysia().use(ingestRoutes(deps)).use(runScoreRoutes(deps)).use(readingRoutes(deps))
}

const PARTIAL = t.Object(
  { partial: t.Optional(OneOf(['true', 'false'], 'Store the valid scores and list the others.')) },
  { additionalProperties: false },
)

/** Without a guard plugin, like the route of events. */
function ingestRoutes({ guards, reader, idempotency, scores, forwarder }: ScoreRoutesDeps) {
  return new Elysia({ prefix: '/api/ingest/v1', detail: { security: SECURITY.keys } })
    .decorate({ bodyHold: undefined as BodyHold | undefined })
    .post(
      '/scores',
      async (context) => {
        const { request, set, query } = context
        const headers = set.headers as Record<string, string | number>
        const { caller, body: sent } = await guards.receive(request, headers, { audience: 'keys', budget: 'ingest' })
        context.bodyHold = sent.hold
        return forwarder.carryOut(request, caller, sent, () => {
          const body = reader.open(request, sent)
          const partial = query.partial === 'true'
          if (!request.headers.has('idempotency-key')) return scores.append(caller, body, { partial, mint: undefined })
          return idempotency.carryOut({ request, caller, bytes: body }, (mint) =>
            scores.append(caller, body, { partial, mint }),
          )
        })
      },
      {
        parse: 'none',
        query: PARTIAL,
        // Only documented, as for events.
        detail: {
          answer: ScoresAccepted,
          operationId: 'addScores',
          summary: 'Score runs',
          description:
            'A 200 means that every accepted score is on stable storage. All scores are stored or none, unless ' +
            '`partial=true`. The latest score with an id replaces the earlier ones.',
          errors: ['NOT_FOUND'],
          tags: ['Ingest'],
          requestBody: { required: true, content: { 'application/json': { schema: AddScores as object } } },
        },
      },
    )
}

/** Who may score a run, besides feed tokens. */
const SCORERS = { audience: 'workspace', budget: 'reads', role: 'approver' } as const

/** A token and FEED_ORIGINS decide who may score; no cookie is involved. */
const ANY_ORIGIN = { 'access-control-allow-origin': '*' }
const PREFLIGHT = {
  ...ANY_ORIGIN,
  'access-control-allow-methods': 'POST',
  'access-control-allow-headers': 'authorization, content-type, x-request-id',
  'access-control-max-age': '600',
}

/** Scores of one run. Pages of other origins may call this, with a feed token. */
function runScoreRoutes(deps: ScoreRoutesDeps) {
  const { guards, reader, idempotency, forwarder } = deps
  return new Elysia({ prefix: '/api/v1', detail: { security: SECURITY.scoring } })
    .decorate({ bodyHold: undefined as BodyHold | undefined })
    .options(
      '/runs/:run_id/scores',
      ({ request }) => {
        guards.checkFeedOrigin(request)
        return new Response(null, { status: 204, headers: PREFLIGHT })
      },
      { detail: { hide: true } },
    )
    .post(
      '/runs/:run_id/scores',
      async (context) => {
        const { request, set, params } = context
        const headers = set.headers as Record<string, string | number>
        if (isFeedToken(bearerToken(request) ?? '')) Object.assign(headers, ANY_ORIGIN)
        const { caller, body: sent } = await guards.receive(request, headers, SCORERS, { scoring: true })
        context.bodyHold = sent.hold
        return forwarder.carryOut(request, caller, sent, () => {
          const bytes = reader.open(request, sent)
          const body = parseJson(bytes, deps.limits.json_depth)
          const runId = params.run_id.toLowerCase()
          if (caller.scoring !== undefined) return addOfToken(deps, caller, caller.scoring, runId, body)
          const score = checked(deps, runId, body)
          const add = { partial: false, mint: undefined }
          if (!request.headers.has('idempotency-key')) return deps.scores.add(caller, [score], add)
          return idempotency.carryOut({ request, caller, bytes }, (mint) =>
            deps.scores.add(caller, [score], { ...add, mint }),
          )
        })
      },
      {
        parse: 'none',
        params: RunParams,
        detail: {
          answer: ScoresAccepted,
          operationId: 'addRunScore',
          summary: 'Score a run',
          description:
            'One score. A feed token that was created with `scores` may write scores of its names for its run; it sends only ' +
            '`name`, the value and what is scored, because the id derives from its subject.',
          errors: ['NOT_FOUND'],
          tags: ['Runs'],
          requestBody: { required: true, content: { 'application/json': { schema: NewRunScore as object } } },
        },
      },
    )
}

async function addOfToken(
  deps: ScoreRoutesDeps,
  caller: Caller,
  scoring: NonNullable<Caller['scoring']>,
  runId: string,
  body: unknown,
) {
  const { run_id: _, ...given } = checked(deps, runId, body)
  const score = scoreOfToken(scoring, runId, given)
  await takeScoreOfToken(deps.sql, caller, scoring)
  return deps.scores.add(caller, [score], { partial: false, mint: undefined })
}

/** @throws ApiError VALIDATION_ERROR */
function checked({ limits }: ScoreRoutesDeps, runId: string, body: unknown): NewScore {
  if (body === null || typeof body !== 'object' || Array.isArray(body) || body instanceof RawJson)
    throw invalid('body', 'expected a JSON object')
  if ('run_id' in body) throw invalid('run_id', 'unknown field; the path names the run')
  const score = { ...body, run_id: runId } as NewScore
  const problems = scoreProblems(score)
  if (problems.length > 0) throw invalidAll(problems)
  const max = limits.event_payload_bytes
  if (Buffer.byteLength(score.metadata?.text ?? '') > max) throw invalid('metadata', `expected at most ${max} bytes`)
  return score
}

function readingRoutes({ guards, scoreReader }: ScoreRoutesDeps) {
  return new Elysia({ prefix: '/api/v1', detail: { tags: ['Runs'], security: SECURITY.anyKey } })
    .use(guards.anyKey('reads', 'admin'))
    .get('/runs/:run_id/scores', ({ caller, params, query }) => scoreReader.list(caller, params.run_id, query), {
      params: RunParams,
      query: PageQuery,
      response: ScorePage,
      detail: {
        operationId: 'listScores',
        summary: 'List the scores of a run',
        description: 'The latest state of each, the one stored last first. Read from ClickHouse, like events.',
      },
    })
}
