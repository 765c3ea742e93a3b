import { Elysia, t } from 'elysia'
import { readable } from '../../activity/runs/access.ts'
import type { RunDirectory } from '../../activity/runs/directory.ts'
import { SCORE_LENGTHS } from '../../activity/scores/schema.ts'
import type { Clock } from '../../base/clock.ts'
import { ApiError, invalid, notFound } from '../../base/errors.ts'
import { Body, Described, Int, Named, Text, Timestamp, Uuid } from '../../base/http/schema.ts'
import { type Sql, sweepRows } from '../../stores/postgres/connect.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import type { KeyRing } from '../../tenants/keys/key-ring.ts'
import type { Caller } from '../../tenants/keys/schema.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import { mintToken } from '../../tenants/keys/token.ts'

const TTL_SECONDS_MAX = 3_600
const TTL_SECONDS_DEFAULT = 900
const SCORE_NAMES_MAX = 20
/** Enough for a person who changes their mind, and little in the hands of anybody else. */
const SCORES_PER_TOKEN_MAX = 100

/** Body of `POST /api/v1/feed-tokens`. */
const createFeedToken = Body({
  agent_id: t.Optional(
    Described(Uuid, 'Limits the token to this agent. A token made with an agent key is always limited to its agent.'),
  ),
  run_id: t.Optional(Described(Uuid, 'Limits the token to this run.')),
  scores: t.Optional(
    Body(
      {
        run_id: Described(Uuid, 'The run that it may score, and the only one whose activity it sees.'),
        names: t.Array(Text({ minLength: 1, maxLength: SCORE_LENGTHS.name }), {
          minItems: 1,
          maxItems: SCORE_NAMES_MAX,
          description: 'The names of the scores that it may write.',
        }),
        subject: t.Optional(
          t.String({
            pattern: '^[A-Za-z0-9_.@+-]{1,100}$',
            description:
              'Whose scores they are, such as your id of the user: a later token with the same subject can change them. Default: ' +
              'only this token can.',
          }),
        ),
      },
      {
        description:
          `The token may write up to ${SCORES_PER_TOKEN_MAX} scores of one run, for ratings in a browser. They have the source ` +
          '`person`.',
      },
    ),
  ),
  ttl_seconds: t.Optional(
    Int({
      minimum: 1,
      maximum: TTL_SECONDS_MAX,
      description: `Lifetime in seconds; ${TTL_SECONDS_DEFAULT} by default.`,
    }),
  ),
})
const CreateFeedToken = Named('CreateFeedToken', createFeedToken)
type CreateFeedToken = typeof CreateFeedToken.static

/** Its response: the only time that the token is shown. */
const FeedToken = Named(
  'FeedToken',
  t.Object({
    token: t.String({ description: 'For `?token=` of a feed.', examples: ['svc_feed_…'] }),
    expires_at: Described(Timestamp, 'When the token expires and its open feeds end; never later than its key.'),
  }),
)
type FeedToken = typeof FeedToken.static

interface FeedTokensDeps {
  readonly sql: Sql
  readonly clock: Clock
  readonly directory: RunDirectory
  readonly ring: Pick<KeyRing, 'issued'>
}

/**
 * Feed tokens (docs/feeds.md#feed-tokens): short-lived substitutes for a key that read, and write scores if allowed, for
 * browsers, which cannot send headers with an EventSource or a WebSocket. They are rows like keys, not signed claims, so that
 * revoking a key ends its tokens in every process at once. `KeyRing.authenticateFeed` looks them up.
 */
export class FeedTokens {
  constructor(private readonly deps: FeedTokensDeps) {}

  /**
   * Creates a token whose access never exceeds that of its key. It expires no later than the key.
   * @throws ApiError NOT_FOUND (no such agent or run in the workspace, or an archived agent), FORBIDDEN (an agent key asks
   *   for another agent or that agent's run), VALIDATION_ERROR (the run does not belong to `agent_id`), UNAUTHENTICATED
   */
  async create(caller: Caller, body: CreateFeedToken): Promise<FeedToken> {
    const { sql, clock } = this.deps
    const { scores } = body
    const scope = await this.scopeOf(caller, body)
    const now = clock.now()
    const wanted = new Date(now + (body.ttl_seconds ?? TTL_SECONDS_DEFAULT) * 1000)
    const { text, hash } = mintToken('feed')
    const [row] = await sql<{ expires_at: Date }[]>`
      insert into feed_tokens (hash, key_id, workspace_id, agent_id, run_id, score_names, scores_left, score_subject,
        created_at, expires_at)
      select ${hash}, key_id, workspace_id, ${scope.agentId}::uuid, ${scope.runId}::uuid, ${scores?.names ?? null}::text[],
        ${scores === undefined ? 0 : SCORES_PER_TOKEN_MAX}, ${scores?.subject ?? null}::text, ${new Date(now)},
        least(expires_at, ${wanted})
      from api_keys where workspace_id = ${caller.workspaceId} and key_id = ${caller.keyId} and revoked_at is null
      returning expires_at`
    if (row === undefined) throw new ApiError('UNAUTHENTICATED', 'the key has been revoked', { reason: 'key_revoked' })
    this.deps.ring.issued(hash)
    return { token: text, expires_at: row.expires_at.toISOString() }
  }

  private async scopeOf(caller: Caller, { agent_id, run_id: runId, scores }: CreateFeedToken) {
    const run_id = runId ?? scores?.run_id
    if (scores !== undefined && scores.run_id.toLowerCase() !== run_id?.toLowerCase())
      throw invalid('scores.run_id', 'expected the run in run_id')
    const named = agent_id?.toLowerCase()
    if (named !== undefined) await this.checkAgent(caller, named)
    const agentId = named ?? caller.agentId
    if (run_id === undefined) return { agentId, runId: null }
    const run = readable(caller, await this.deps.directory.find(caller.workspaceId, run_id.toLowerCase()))
    if (agentId !== null && run.agentId !== agentId) throw invalid('run_id', 'expected a run of the agent in agent_id')
    return { agentId, runId: run.runId }
  }

  private async checkAgent({ workspaceId, agentId: own }: Caller, agentId: string): Promise<void> {
    const [agent] = await this.deps.sql`
      select agent_id from agents
      where workspace_id = ${workspaceId} and agent_id = ${agentId} and status <> 'archived'`
    if (agent === undefined) throw notFound('agent', { param: 'agent_id' })
    if (own !== null && own !== agentId)
      throw new ApiError('FORBIDDEN', 'this key belongs to another agent', { reason: 'wrong_agent', param: 'agent_id' })
  }
}

interface FeedTokenRoutesDeps {
  readonly guards: Guards
  readonly feedTokens: FeedTokens
}

export function feedTokenRoutes({ guards, feedTokens }: FeedTokenRoutesDeps) {
  return new Elysia({ prefix: '/api/v1', detail: { security: SECURITY.keys, tags: ['Feeds'] } })
    .use(guards.keys('reads'))
    .post('/feed-tokens', ({ caller, body }) => feedTokens.create(caller, body), {
      body: CreateFeedToken,
      response: FeedToken,
      detail: {
        operationId: 'createFeedToken',
        summary: 'Create a feed token',
        description:
          'A short-lived token for `?token=` of a feed, because browsers cannot send a header there. It only reads, unless ' +
          'it has `scores`. ' +
          'It sees no more than the key does, and stops working with it.',
        errors: ['NOT_FOUND'],
      },
    })
}

/**
 * Deletes expired tokens; called by a periodic job. If the clock jumps ahead, valid tokens are deleted too, and their owners
 * create new ones: nothing else is lost.
 * @returns the number of deleted tokens
 */
export function sweepFeedTokens(sql: Sql, clock: Clock): Promise<number> {
  const now = new Date(clock.now())
  return sweepRows(
    (limit) => sql`
      delete from feed_tokens where hash in
        (select hash from feed_tokens where expires_at <= ${now} limit ${limit})`,
  )
}
