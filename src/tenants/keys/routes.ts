import { Elysia } from 'elysia'
import { AgentParams } from '../../base/http/schema.ts'
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
import { SECURITY } from './security.ts'
import type { KeyStore } from './store.ts'

interface KeyRoutesDeps {
  readonly guards: Guards
  readonly keys: KeyStore
}

/** Keys of a workspace (docs/keys.md#managing-keys). */
export function keyRoutes({ guards, keys }: KeyRoutesDeps) {
  return new Elysia({ prefix: '/api/v1', detail: { security: SECURITY.workspaceKey, tags: ['Keys'] } })
    .use(guards.workspaceKey('reads', 'admin'))
    .post('/keys', ({ caller, body, mint }) => keys.createForWorkspace(caller, body, mint), {
      body: CreateKey,
      response: NewKey,
      detail: {
        operationId: 'createWorkspaceKey',
        summary: 'Create a workspace key',
        description: 'The key is shown only in this answer.',
      },
    })
    .get('/keys', ({ caller, query }) => keys.list(caller, query), {
      query: ListKeys,
      response: KeyPage,
      detail: {
        operationId: 'listKeys',
        summary: 'List keys',
        description: 'Keys of the workspace and of its agents, newest first, without their secrets.',
      },
    })
    .post(
      '/agents/:agent_id/keys',
      ({ caller, params, body, mint }) => keys.createForAgent(caller, params.agent_id.toLowerCase(), body, mint),
      {
        params: AgentParams,
        body: CreateAgentKey,
        response: NewKey,
        detail: {
          operationId: 'createAgentKey',
          summary: 'Create an agent key',
          description: 'The key is shown only in this answer.',
        },
      },
    )
    .post('/keys/:key_id/revoke', ({ caller, params }) => keys.revoke(caller, params.key_id.toLowerCase()), {
      params: KeyParams,
      body: RevokeKey,
      response: KeyRecord,
      detail: {
        operationId: 'revokeKey',
        summary: 'Revoke a key',
        description:
          'Once this call has answered, no process accepts the key or its feed tokens. Its open feeds are closed.',
      },
    })
    .post(
      '/keys/:key_id/rotate',
      ({ caller, params, body, mint }) => keys.rotate(caller, params.key_id.toLowerCase(), body, mint),
      {
        params: KeyParams,
        body: RotateKey,
        response: NewKey,
        detail: {
          operationId: 'rotateKey',
          summary: 'Rotate a key',
          description: 'Creates a new key that replaces this one, which becomes invalid after the grace period.',
        },
      },
    )
}
