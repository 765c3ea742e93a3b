import { type AnyElysia, Elysia } from 'elysia'
import { ApiError } from '../../base/errors.ts'
import type { MetricsText } from '../../base/metrics.ts'
import { docsHeaders, docsPage } from '../../openapi/docs-page.ts'
import { guideRoutes } from '../../openapi/guide-routes.ts'
import type { Config } from '../config/config.ts'
import { checkHealth, type HealthDeps } from './health.ts'
import { Alive, PublishedLimits, publishedLimits, Ready } from './schema.ts'

const METRICS_HEADERS = { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }
const METRICS_RESPONSES = {
  200: { description: 'Prometheus text format', content: { 'text/plain': { schema: { type: 'string' as const } } } },
}

export interface OpsDeps {
  readonly config: Pick<Config, 'limits' | 'rateLimits' | 'publicUrl'>
  /** The package's version. */
  readonly version: string
  readonly health: HealthDeps
  readonly metrics: MetricsText
  /** The whole service, whose routes are documented. */
  readonly app: () => AnyElysia
}

/** Health, metrics, limits and documentation (docs/api.md#calls-without-a-key). None of these routes needs a key. */
export function opsRoutes(deps: OpsDeps) {
  const limits = publishedLimits(deps.config)
  return new Elysia({ name: 'ops', detail: { security: [], tags: ['Operation'] } })
    .get(
      '/healthz',
      () => ({ status: 'ok' as const, version: deps.version, uptime_seconds: Math.floor(process.uptime()) }),
      {
        response: Alive,
        detail: {
          operationId: 'getHealth',
          summary: 'Check whether the process is alive',
          description: 'Does not check the stores; see /readyz.',
        },
      },
    )
    .get('/readyz', () => readiness(deps.health), {
      response: Ready,
      detail: {
        errors: ['UNAVAILABLE'],
        operationId: 'getReadiness',
        summary: 'Check whether requests can be served',
        description: 'Checks each store and reports the lag of each consumer of the journal.',
      },
    })
    .get('/metrics', async () => new Response(await deps.metrics.text(), { headers: METRICS_HEADERS }), {
      detail: {
        operationId: 'getMetrics',
        summary: 'Read metrics',
        description: 'Metrics in the Prometheus text format.',
        responses: METRICS_RESPONSES,
      },
    })
    .get('/api/v1/limits', () => limits, {
      response: PublishedLimits,
      detail: {
        operationId: 'getLimits',
        summary: 'Read the limits',
        description: 'The configured limits of requests and rates.',
      },
    })
    .use(docs(deps))
    .use(guideRoutes(deps.config))
}

/**
 * Reports can be accepted without ClickHouse, so the service is ready without it; SQL then answers UNAVAILABLE.
 * @throws ApiError UNAVAILABLE when an essential dependency does not work or the service is stopping
 */
async function readiness(deps: HealthDeps) {
  const { status, ...rest } = await checkHealth(deps)
  if (status !== 'unavailable') return { status, ...rest }
  const problems = Object.entries(rest.dependencies).flatMap(([name, { problem }]) =>
    problem === null ? [] : [`${name}: ${problem}`],
  )
  throw new ApiError('UNAVAILABLE', problems.length > 0 ? problems.join('; ') : 'the service is stopping')
}

function docs({ app: service, version }: OpsDeps) {
  let document: string | undefined
  const bundle = docsPage()
  return new Elysia({ name: 'docs', detail: { hide: true } })
    .get('/docs', ({ request }) => bundle.page(request))
    .get('/docs/assets/:file', ({ request, params }) => bundle.asset(request, params.file))
    .get('/docs/json', async () => {
      // Loaded with the first request: its generator would slow every start.
      const { openApiDocument } = await import('../../openapi/openapi.ts')
      document ??= JSON.stringify(openApiDocument(service(), version))
      return new Response(document, { headers: docsHeaders('application/json') })
    })
}
