import type { FeatureContext } from '../../tenants/feature.ts'
import type { Traces } from '../traces/traces.ts'
import { JsonConverter } from './json-converter.ts'
import { LogIngest } from './log-ingest.ts'
import { otlpRoutes } from './routes.ts'

/** Reports by OpenTelemetry (docs/opentelemetry.md). */
export function createOtlp({ guards, forwarder }: FeatureContext, shared: Traces) {
  const json = new JsonConverter()
  return { routes: otlpRoutes({ guards, forwarder, ...shared, logs: new LogIngest(shared), json }), json }
}
