import { Elysia } from 'elysia'
import type { Guards } from '../keys/guards.ts'
import { DeletedSecret, ListSecrets, PutSecret, SecretPage, SecretParams, SecretRecord } from './schema.ts'
import type { SecretStore } from './store.ts'

export interface SecretRoutesDeps {
  readonly guards: Guards
  readonly secrets: SecretStore
}

const tags = ['Secrets']

/** Secrets of a workspace (docs/specification.md#secrets): written and named, never read. */
export function secretRoutes({ guards, secrets }: SecretRoutesDeps) {
  return new Elysia({ prefix: '/api/v1/secrets' })
    .use(guards.workspaceKey('reads'))
    .put('/:name', ({ caller, params, body }) => secrets.put(caller, params.name, body), {
      params: SecretParams,
      body: PutSecret,
      response: SecretRecord,
      detail: { tags, summary: 'Set a secret that headers of tools refer to as {{secret:NAME}}' },
    })
    .get('', ({ caller, query }) => secrets.list(caller, query), {
      query: ListSecrets,
      response: SecretPage,
      detail: { tags, summary: 'List the names of the secrets of the workspace' },
    })
    .delete('/:name', ({ caller, params }) => secrets.delete(caller, params.name), {
      params: SecretParams,
      response: DeletedSecret,
      detail: { tags, summary: 'Delete a secret' },
    })
}
