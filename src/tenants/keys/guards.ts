import { setImmediate as nextIteration } from 'node:timers/promises'
import { Elysia } from 'elysia'
import { REQUEST_STATE } from '../../base/http/envelope.ts'
import type { Budget } from '../../base/http/rate-limit.ts'
import type { Idempotency, IdempotencyContext } from '../../stores/idempotency/store.ts'
import { type Access, type AdmissionDeps, createAdmission } from './admission.ts'
import type { Caller, Role } from './schema.ts'

interface GuardsDeps extends AdmissionDeps {
  readonly idempotency: Idempotency
}

/**
 * The checks in front of every route that needs a key, in this order (docs/api.md#order-of-checks): size of the
 * body, key (401), scope and role (403), budget (429), and only then the content of the body (400). Each guard is a plugin: the
 * routes of the instance that uses it get `caller`, `mint`, and the parsed `body`. A guard that accepts people says the
 * lowest role of those who may call its routes; their GET requests are for all roles.
 */
export type Guards = ReturnType<typeof createGuards>

/** Reading a larger body and working on it are two steps: each may take most of what one may take. */
const LARGE_BYTES = 1024 * 1024
/** The owner that request bodies of the operator count for, because they belong to no workspace. */
const OPERATOR = 'operator'

export function createGuards(deps: GuardsDeps) {
  const { reader, idempotency } = deps
  const { admit, receive, readBody, admitFeed, checkFeedOrigin, admitOperator } = createAdmission(deps)

  const beforeHandle = async (context: IdempotencyContext) => {
    if (context.bodyBytes.length > LARGE_BYTES) await nextIteration()
    return idempotency.beforeHandle(context)
  }

  const guard = (access: Access, isOfAgent = false) => {
    const agentOf = (params: object) =>
      isOfAgent ? (params as { agent_id: string }).agent_id.toLowerCase() : undefined
    return (
      withContext(`${access.audience} ${access.budget} ${access.role} ${isOfAgent}`)
        // Runs before all other hooks, for every method that may have a body.
        .onParse({ as: 'scoped' }, async (context) => {
          const { request, set, params } = context
          const headers = set.headers as Record<string, string | number>
          const { caller, body } = await receive(request, headers, access, { agentId: agentOf(params) })
          context.admitted = caller
          context.bodyHold = body.hold
          return body
        })
        .derive({ as: 'scoped' }, async ({ request, set, params, admitted }) => {
          if (admitted !== undefined) return { caller: admitted }
          const headers = set.headers as Record<string, string | number>
          return { caller: await admit(request, headers, access, { agentId: agentOf(params) }) }
        })
        .onTransform({ as: 'scoped' }, reader.transform)
        .onBeforeHandle({ as: 'scoped' }, beforeHandle)
    )
  }

  return {
    admit,
    receive,
    checkFeedOrigin,
    /** Agent keys only, with the budget of ingest requests. */
    ingest: guard({ audience: 'agent', budget: 'ingest' }),
    /** Workspace keys and people: management and SQL. */
    workspaceKey: (budget: Budget, role: Role) => guard({ audience: 'workspace', budget, role }),
    /** Only people who are signed in: routes about their own sign-in. */
    person: (budget: Budget, role: Role) => guard({ audience: 'person', budget, role }),
    /** Keys of either type, and people. The store of the route limits an agent key to its own agent. */
    anyKey: (budget: Budget, role: Role) => guard({ audience: 'any', budget, role }),
    /** Keys of either type, an agent key only for the agent in the path, `:agent_id`; and people. */
    keyOfAgent: (budget: Budget, role: Role) => guard({ audience: 'any', budget, role }, true),
    /** Keys of either type, but nobody who is signed in. */
    keys: (budget: Budget) => guard({ audience: 'keys', budget }),
    /** Keys of either type and feed tokens; only for feeds. */
    feed: withContext('feed').derive({ as: 'scoped' }, async ({ request, set }) => ({
      feed: await admitFeed(request, set.headers as Record<string, string | number>),
    })),
    /** The operator token. It is not an API key, so there is no caller and no budget. */
    operator: withContext('operator')
      .onParse({ as: 'scoped' }, async (context) => {
        const { request } = context
        reader.checkLength(request)
        admitOperator(request)
        const body = await readBody(request, OPERATOR)
        context.bodyHold = body.hold
        return body
      })
      .derive({ as: 'scoped' }, ({ request }) => {
        admitOperator(request)
        return {}
      })
      .onTransform({ as: 'scoped' }, reader.transform)
      .onBeforeHandle({ as: 'scoped' }, beforeHandle),
  }
}

/**
 * Elysia runs plugins with the same name and seed once per route. `createEnvelope` sets the state of the request; it is
 * repeated here for its type.
 */
function withContext(seed: string) {
  return new Elysia({ name: 'guard', seed }).decorate({ ...REQUEST_STATE, admitted: undefined as Caller | undefined })
}
