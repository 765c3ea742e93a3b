import { t } from 'elysia'
import type { Config } from '../config.ts'
import { Count, Described, Named, Nullable, Timestamp } from '../http/schema.ts'

/** `GET /healthz`: the process is alive. */
export const Alive = Named(
  'Alive',
  t.Object({
    status: t.Literal('ok', { description: 'The process answers.' }),
    version: t.String({ description: 'The version of the service.' }),
    uptime_seconds: t.Number({ minimum: 0, description: 'How long the process has been running.' }),
  }),
)

const Problem = Described(Nullable(t.String()), 'What is wrong; null when nothing is.')

/** `GET /readyz` while usable; otherwise the answer is an UNAVAILABLE error that names what is missing. */
export const Ready = Named(
  'Ready',
  t.Object({
    status: t.UnionEnum(['ready', 'degraded'], {
      default: undefined,
      description: '`degraded`: reports are taken, but something else does not work.',
    }),
    dependencies: t.Record(
      t.String(),
      t.Object({
        ok: t.Boolean({ description: 'It can be used.' }),
        latency_ms: t.Number({ minimum: 0, description: 'How long it took to answer.' }),
        problem: Problem,
      }),
      { description: 'The stores, by name.' },
    ),
    journal: t.Object(
      {
        epoch: t.String({
          description: 'The name of the journal; another one after it went back to an earlier state.',
        }),
        end_seq: Count('The last position given.'),
        gaps: t.Array(
          t.Object({
            after_seq: Count('The last position before the gap.'),
            through_seq: Count('The last position of the gap.'),
          }),
          { description: 'Positions whose rows were lost.' },
        ),
      },
      { description: 'The log of everything accepted.' },
    ),
    loops: t.Record(
      t.String(),
      t.Object({
        ok: t.Boolean({ description: 'Its last attempt succeeded.' }),
        failing_ms: Count('How long it has been failing.'),
        failures: Count('Attempts that failed since the last that succeeded.'),
        problem: Problem,
      }),
      { description: 'What the service does in the background, by name.' },
    ),
    consumers: t.Record(
      t.String(),
      t.Object({ lag: Described(Nullable(Count('Positions.')), 'Positions that it is behind; null: not known.') }),
      { description: 'What reads the journal, by name.' },
    ),
    set_back: t.Array(
      t.Object({
        store: t.String({ description: 'The store.' }),
        noticed_at: Described(Timestamp, 'When that was noticed.'),
        detail: t.String({ description: 'How far it went back, and what was done.' }),
      }),
      { description: 'Stores that were found to have gone back to an earlier state since the service started.' },
    ),
  }),
)

/**
 * `GET /api/v1/limits` (docs/specification.md#request-limits). Sizes in bytes, lengths in characters; a rate of 0 is
 * unlimited.
 */
export const PublishedLimits = Named(
  'Limits',
  t.Object(
    {
      body_bytes: Count('A request body, inflated.'),
      events_per_call: Count('Events of one call.'),
      event_payload_bytes: Count('The payload of one event.'),
      run_input_bytes: Count('The input of a run.'),
      run_output_bytes: Count('The output of a run.'),
      prompt_length: Count('The prompt of an agent with its placeholders filled.'),
      type_length: Count('The type of an event.'),
      task_name_length: Count('The name of a task.'),
      external_id_length: Count('external_run_id and external_user_id.'),
      tags: Count('Tags of a run.'),
      tag_length: Count('One tag.'),
      json_depth: Count('Levels of nesting in JSON.'),
      rate_limits: t.Object(
        {
          ingest_requests_per_minute: Count('Calls that report.'),
          events_per_second: Count('Events reported.'),
          invokes_per_minute: Count('Calls of invoke.'),
          reads_per_minute: Count('Calls that read or manage.'),
          queries_per_minute: Count('SQL queries.'),
        },
        { description: 'For each key; 0 is unlimited.' },
      ),
    },
    { description: 'Sizes in bytes, lengths in characters.' },
  ),
)
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
