import { agentRoutes } from '../../src/activity/agents/routes.ts'
import { AgentStore } from '../../src/activity/agents/store.ts'
import { agentVersionRoutes } from '../../src/activity/agents/version-routes.ts'
import { AgentVersions } from '../../src/activity/agents/versions.ts'
import type { Clock } from '../../src/base/clock.ts'
import { bodyReader } from '../../src/base/http/body.ts'
import { createEnvelope } from '../../src/base/http/envelope.ts'
import { FailureLimit, type FailureLimitOptions, RateLimiter, type RateLimits } from '../../src/base/http/rate-limit.ts'
import { serverOptions } from '../../src/base/http/server-options.ts'
import { mint } from '../../src/base/ids.ts'
import type { Limits } from '../../src/base/limits.ts'
import { createLog } from '../../src/base/log.ts'
import { Idempotency } from '../../src/stores/idempotency/store.ts'
import { connectPostgres, unavailableOf } from '../../src/stores/postgres/connect.ts'
import { createGuards } from '../../src/tenants/keys/guards.ts'
import { KeyRing, type KeyRingDeps } from '../../src/tenants/keys/key-ring.ts'
import { keyRoutes } from '../../src/tenants/keys/routes.ts'
import { KeyStore } from '../../src/tenants/keys/store.ts'
import { bootstrapWorkspace } from '../../src/tenants/workspaces/bootstrap.ts'
import { ownWorkspaceRoutes, workspaceRoutes } from '../../src/tenants/workspaces/routes.ts'
import { WorkspaceStore } from '../../src/tenants/workspaces/store.ts'
import { type Answer, createApi } from '../support/api.ts'
import { freshDatabase } from '../support/postgres.ts'
import { atEnd } from '../support/teardown.ts'

/** The routes of keys, workspaces and agents as the service has them, on a real port and a real Postgres. */

type BodyLimits = Pick<Limits, 'body_bytes' | 'json_depth'>

export interface AuthAppOptions {
  readonly databaseUrl?: string
  readonly operatorToken?: string | undefined
  readonly rateLimits?: Partial<RateLimits>
  readonly ring?: Partial<KeyRingDeps>
  readonly bodyBytesInFlight?: number
  readonly operatorAttempts?: Partial<FailureLimitOptions>
  /** Called by the handler of `POST /ingest`. */
  readonly onIngest?: () => Promise<void>
}

export interface CallOptions {
  readonly key?: string | undefined
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

const UNLIMITED: RateLimits = {
  ingestRequestsPerMinute: 0,
  eventsPerSecond: 0,
  invokesPerMinute: 0,
  readsPerMinute: 0,
  queriesPerMinute: 0,
}
const BODY_TIMEOUT_MS = 30_000
export const EVENT_RETENTION_DAYS = 90
export const OPERATOR_TOKEN = 'operator-token-of-the-tests'

/** The real clock, shifted by `aheadMs`. */
export class MovableClock implements Clock {
  aheadMs = 0
  now(): number {
    return Date.now() + this.aheadMs
  }
}

/** The guards of the service on a database, with what they need. */
export async function openGuards(url: string, limits: BodyLimits, options: AuthAppOptions, connections: number) {
  const log = createLog('error')
  const sql = connectPostgres(url, { log, max: connections })
  const heartbeat = connectPostgres(url, { log, max: 1 })
  const clock = new MovableClock()
  const { bodyBytesInFlight = 1 << 30 } = options
  const instanceId = crypto.randomUUID()
  const ring = new KeyRing({ sql, heartbeat, clock, log, instanceId, exclusive: false, ...options.ring })
  await ring.start()
  const guards = createGuards({
    ring,
    limiter: new RateLimiter({ ...UNLIMITED, ...options.rateLimits }),
    reader: bodyReader({ limits, bodyTimeoutMs: BODY_TIMEOUT_MS, bodyBytesInFlight }),
    idempotency: new Idempotency({ sql, clock, expiryClock: clock, log, instanceId, gone: () => ring.gone() }),
    operatorToken: 'operatorToken' in options ? options.operatorToken : OPERATOR_TOKEN,
    operatorAttempts: new FailureLimit({ what: 'wrong operator tokens', perMinute: 0, ...options.operatorAttempts }),
    addressOf: (request) => request.headers.get('x-test-address') ?? 'test',
    feedOrigins: undefined,
  })
  const close = async () => {
    await ring.stop()
    await Promise.all([sql.end({ timeout: 1 }), heartbeat.end({ timeout: 1 })])
  }
  return { log, sql, clock, ring, guards, close }
}

/** Calls an app that listens at `base`; without a key by default. */
export function callAt(base: string, method: string, path: string, { key, body, headers = {} }: CallOptions = {}) {
  return createApi(base, '')(method, path, body, { key: key ?? null, headers })
}

export async function authApp(options: AuthAppOptions = {}) {
  const url = options.databaseUrl ?? (await freshDatabase()).url
  const limits = { body_bytes: 1 << 20, json_depth: 64 }
  const { log, sql, clock, ring, guards, close } = await openGuards(url, limits, options, 4)
  const bootstrapped = await bootstrapWorkspace({ sql, clock, mint, key: undefined })
  const keys = new KeyStore({ sql, ring, clock })
  const workspaces = new WorkspaceStore({ sql, ring, clock })
  const app = createEnvelope({ log, limits, unavailableOf, logRequests: false })
    .use(keyRoutes({ guards, keys }))
    .use(agentRoutes({ guards, agents: new AgentStore({ sql, ring, clock }) }))
    .use(agentVersionRoutes({ guards, versions: new AgentVersions({ sql, clock }) }))
    .use(workspaceRoutes({ guards, workspaces, keys }))
    .use(
      ownWorkspaceRoutes({
        guards,
        workspaces,
        eventRetentionDays: EVENT_RETENTION_DAYS,
        recount: async () => ({ runs: 0 }),
      }),
    )
    // Stand-ins for routes of other modules behind the same guards.
    .use((root) =>
      root.group('/ingest', (group) =>
        group.use(guards.ingest).post('', async ({ caller }) => {
          await options.onIngest?.()
          return { ...caller }
        }),
      ),
    )
    .use((root) =>
      root.group('/reading', (group) =>
        group.use(guards.anyKey('reads', 'viewer')).get('', ({ caller }) => ({ ...caller })),
      ),
    )
    .listen(serverOptions({ host: '127.0.0.1', port: 0, bodyTimeoutMs: BODY_TIMEOUT_MS }))
  const base = `http://127.0.0.1:${app.server!.port}`
  atEnd(async () => {
    await app.stop(true)
    await close()
  })

  const call = (method: string, path: string, given?: CallOptions) => callAt(base, method, path, given)

  /** The bootstrapped workspace and its key; empty for any further app on the same database. */
  const owner = { workspaceId: bootstrapped.workspaceId ?? '', key: bootstrapped.freshKey ?? '' }

  return {
    url,
    base,
    sql,
    ring,
    clock,
    guards,
    owner,
    call,
    /** Another tenant. */
    async newWorkspace(): Promise<{ workspaceId: string; key: string; keyId: string }> {
      const { data } = await call('POST', '/api/v1/workspaces', { key: OPERATOR_TOKEN, body: { name: 'another' } })
      return { workspaceId: data.workspace_id, key: data.key, keyId: data.key_id }
    },
    async newAgent(body: object = {}, key = owner.key): Promise<string> {
      const { data } = await call('POST', '/api/v1/agents', { key, body: { name: 'an agent', ...body } })
      return data.agent_id
    },
    async newAgentKey(agentId: string, key = owner.key): Promise<{ key: string; keyId: string }> {
      const { data } = await call('POST', `/api/v1/agents/${agentId}/keys`, { key, body: {} })
      return { key: data.key, keyId: data.key_id }
    },
    async newKey(body: object = {}): Promise<{ key: string; keyId: string }> {
      const { data } = await call('POST', '/api/v1/keys', { key: owner.key, body: { name: 'a key', ...body } })
      return { key: data.key, keyId: data.key_id }
    },
  }
}

export type AuthApp = Awaited<ReturnType<typeof authApp>>

/** Status and error code of an answer, for example `403 FORBIDDEN`. */
export function verdict(answer: Answer): string {
  return answer.error === null ? `${answer.status}` : `${answer.status} ${answer.error.code}`
}
