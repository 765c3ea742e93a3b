import { Elysia } from 'elysia'
import type { PriceTable } from '../conventions/prices.ts'
import type { Guards } from '../keys/guards.ts'
import { SECURITY } from '../keys/security.ts'
import type { Analytics } from './analytics.ts'
import { QueryCatalogue, queryCatalogue } from './catalogue.ts'

interface CatalogueRoutesDeps {
  readonly guards: Guards
  readonly analytics: Analytics
  readonly modelPrices: PriceTable
}

/** The tables that SQL can query (docs/specification.md#tables). */
export function catalogueRoutes({ guards, analytics, modelPrices }: CatalogueRoutesDeps) {
  const catalogue = queryCatalogue(analytics.caps, modelPrices)
  return new Elysia({ prefix: '/api/v1', detail: { security: SECURITY.workspaceKey } })
    .use(guards.workspaceKey('reads'))
    .get('/query/schema', () => catalogue, {
      response: QueryCatalogue,
      detail: {
        tags: ['SQL'],
        operationId: 'getQuerySchema',
        summary: 'Read the schema for SQL',
        description:
          'Tables, columns and their types, with example queries, the limits of a query, and the prices of models.',
      },
    })
}
