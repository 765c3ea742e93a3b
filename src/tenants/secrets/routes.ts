import { Elysia } from 'elysia'
import { PageQuery } from '../../base/http/schema.ts'
import type { Guards } from '../keys/guards.ts'
import { SECURITY } from '../keys/security.ts'
import { DeletedSecret, PutSecret, SecretPage, SecretParams, SecretRecord } from './schema.ts'
import type { SecretStore } from './store.ts'

/** Secrets of a workspace (docs/hosted-agents.md#secrets): written and listed, never read. */
export function secretRoutes({ guards, secrets }: { readonly guards: Guards; readonly secrets: SecretStore }) {
  return new Elysia({ prefix: '/api/v1/secrets', detail: { tags: ['Secrets'], security: SECURITY.workspaceKey } })
    .use(guards.workspaceKey('reads', 'admin'))
    .put('/:name', ({ caller, params, body }) => secrets.put(caller, params.name, body), {
      params: SecretParams,
      body: PutSecret,
      response: SecretRecord,
      detail: {
        operationId: 'setSecret',
        summary: 'Set a secret',
        description:
          'Headers of tools refer to it as `{{secret:NAME}}`. Its value is stored encrypted and never shown again.',
        errors: ['CONFLICT'],
      },
    })
    .get('', ({ caller, query }) => secrets.list(caller, query), {
      query: PageQuery,
      response: SecretPage,
      detail: {
        operationId: 'listSecrets',
        summary: 'List secrets',
        description: 'Names and dates only; no call returns a value.',
      },
    })
    .delete('/:name', ({ caller, params }) => secrets.delete(caller, params.name), {
      params: SecretParams,
      response: DeletedSecret,
      detail: {
        operationId: 'deleteSecret',
        summary: 'Delete a secret',
        description: 'Calls of tools that refer to it fail from then on.',
      },
    })
}
