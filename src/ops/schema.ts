import { t } from 'elysia'
import type { Config } from '../config.ts'
import { Nullable } from '../http/schema.ts'

/** `GET /healthz`: the process is alive. */
export const Alive = t.Object({ status: t.Literal('ok'), version: t.String(), uptime_seconds: t.Number() })

const Count = t.Integer({ minimum: 0 })

/** `GET /readyz` while usable; otherwise the answer is an UNAVAILABLE error that names what is missing. */
export const Ready = t.Object({
  status: t.Union([t.Literal('ready'), t.Literal('degraded')]),
  dependencies: t.Record(
    t.String(),
    t.Object({ ok: t.Boolean(), latency_ms: t.Number(), problem: Nullable(t.String()) }),
  ),
  journal: t.Object({
    epoch: t.String(),
    end_seq: Count,
    gaps: t.Array(t.Object({ after_seq: Count, through_seq: Count })),
  }),
  loops: t.Record(
    t.String(),
    t.Object({ ok: t.Boolean(), failing_ms: Count, failures: Count, problem: Nullable(t.String()) }),
  ),
  consumers: t.Record(t.String(), t.Object({ lag: Nullable(Count) })),
  set_back: t.Array(t.Object({ store: t.String(), noticed_at: t.String(), detail: t.String() }), {
    description: 'Stores that were found to have gone back to an earlier state since the service started.',
  }),
})

/**
 * `GET /api/v1/limits` (docs/specification.md#request-limits). Sizes in bytes, lengths in characters; a rate of 0 is
 * unlimited.
 */
export const PublishedLimits = t.Object({
  body_bytes: Count,
  events_per_call: Count,
  event_payload_bytes: Count,
  run_input_bytes: Count,
  run_output_bytes: Count,
  prompt_length: Count,
  type_length: Count,
  task_name_length: Count,
  external_id_length: Count,
  tags: Count,
  tag_length: Count,
  json_depth: Count,
  rate_limits: t.Object({
    ingest_requests_per_minute: Count,
    events_per_second: Count,
    invokes_per_minute: Count,
    reads_per_minute: Count,
    queries_per_minute: Count,
  }),
})
export type PublishedLimits = typeof PublishedLimits.static

export function publishedLimits({ limits, rateLimits }: Pick<Config, 'limits' | 'rateLimits'>): PublishedLimits {
  return {
    ...limits,
    rate_limits: {
      ingest_requests_per_minute: rateLimits.ingestRequestsPerMinute,
      events_per_second: rateLimits.eventsPerSecond,
      invokes_per_minute: rateLimits.invokesPerMinute,
      reads_per_minute: rateLimits.readsPerMinute,
      queries_per_minute: rateLimits.queriesPerMinute,
    },
  }
}
