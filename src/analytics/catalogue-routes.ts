import { Elysia } from 'elysia'
import type { Guards } from '../keys/guards.ts'
import type { Analytics } from './analytics.ts'
import { QueryCatalogue, queryCatalogue } from './catalogue.ts'

export interface CatalogueRoutesDeps {
  readonly guards: Guards
  readonly analytics: Analytics
}

/** What SQL there is to ask (docs/specification.md#tables). */
export function catalogueRoutes({ guards, analytics }: CatalogueRoutesDeps) {
  const catalogue = queryCatalogue(analytics.caps)
  return new Elysia({ prefix: '/api/v1' }).use(guards.workspaceKey('reads')).get('/query/schema', () => catalogue, {
    response: QueryCatalogue,
    detail: { tags: ['SQL'], summary: 'Read the tables and columns that SQL has, with example queries' },
  })
}
