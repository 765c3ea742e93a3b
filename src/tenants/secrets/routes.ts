import { PageQuery } from '../../base/http/schema.ts'
import { ifMatch } from '../../base/http/version.ts'
import type { Guards } from '../keys/guards.ts'
import { versionedRoutes } from '../keys/versioned-routes.ts'
import { DeletedSecret, PutSecret, SecretPage, SecretParams, SecretRecord } from './schema.ts'
import type { SecretStore } from './store.ts'

/** Secrets of a workspace (docs/hosted-agents.md#secrets): written and listed, never read. */
export function secretRoutes({ guards, secrets }: { readonly guards: Guards; readonly secrets: SecretStore }) {
  return versionedRoutes(guards, '/api/v1/secrets', 'Secrets')
    .put('/:name', ({ caller, params, body, request }) => secrets.put(caller, params.name, body, ifMatch(request)), {
      params: SecretParams,
      body: PutSecret,
      response: SecretRecord,
      detail: {
        operationId: 'setSecret',
        summary: 'Set a secret',
        description:
          'Headers of tools refer to it as `{{secret:NAME}}`. Its value is stored encrypted and never shown again. With ' +
          '`If-Match` it is only replaced, not created.',
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
    .delete('/:name', ({ caller, params, request }) => secrets.delete(caller, params.name, ifMatch(request)), {
      params: SecretParams,
      response: DeletedSecret,
      detail: {
        operationId: 'deleteSecret',
        summary: 'Delete a secret',
        description: 'Calls of tools that refer to it fail from then on.',
      },
    })
}
