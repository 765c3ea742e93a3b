import { Elysia } from 'elysia'
import { AgentParams } from '../agents/schema.ts'
import type { Guards } from './guards.ts'
import {
  CreateAgentKey,
  CreateKey,
  KeyPage,
  KeyParams,
  KeyRecord,
  ListKeys,
  NewKey,
  RevokeKey,
  RotateKey,
} from './schema.ts'
import type { KeyStore } from './store.ts'

export interface KeyRoutesDeps {
  readonly guards: Guards
  readonly keys: KeyStore
}

const tags = ['Keys']

/** Keys of a workspace (docs/specification.md#managing-keys). */
export function keyRoutes({ guards, keys }: KeyRoutesDeps) {
  return new Elysia({ prefix: '/api/v1' })
    .use(guards.workspaceKey('reads'))
    .post('/keys', ({ caller, body, mint }) => keys.createForWorkspace(caller, body, mint), {
      body: CreateKey,
      response: NewKey,
      detail: { tags, summary: 'Make a workspace key' },
    })
    .get('/keys', ({ caller, query }) => keys.list(caller, query), {
      query: ListKeys,
      response: KeyPage,
      detail: { tags, summary: 'List the keys of the workspace' },
    })
    .post(
      '/agents/:agentId/keys',
      ({ caller, params, body, mint }) => keys.createForAgent(caller, params.agentId.toLowerCase(), body, mint),
      {
        params: AgentParams,
        body: CreateAgentKey,
        response: NewKey,
        detail: { tags, summary: 'Make a key for an agent' },
      },
    )
    .post('/keys/:keyId/revoke', ({ caller, params }) => keys.revoke(caller, params.keyId.toLowerCase()), {
      params: KeyParams,
      body: RevokeKey,
      response: KeyRecord,
      detail: { tags, summary: 'Revoke a key: no process accepts it once this has answered' },
    })
    .post(
      '/keys/:keyId/rotate',
      ({ caller, params, body, mint }) => keys.rotate(caller, params.keyId.toLowerCase(), body, mint),
      {
        params: KeyParams,
        body: RotateKey,
        response: NewKey,
        detail: { tags, summary: 'Put a new key in the place of an old one' },
      },
    )
}
