import type { FeatureContext } from '../../tenants/feature.ts'
import type { Traces } from '../traces/traces.ts'
import { JsonConverter } from './json-converter.ts'
import { LogIngest } from './log-ingest.ts'
import { otlpRoutes } from './routes.ts'
import { SpanIngest } from './span-ingest.ts'

/** Reports by OpenTelemetry (docs/opentelemetry.md). */
export function createOtlp({ guards, forwarder }: FeatureContext, shared: Traces) {
  const json = new JsonConverter()
  const ingest = { spans: new SpanIngest(shared), logs: new LogIngest(shared), json }
  return { routes: otlpRoutes({ guards, forwarder, ...shared, ...ingest }), json }
}
