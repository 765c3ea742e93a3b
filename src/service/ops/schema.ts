import { t } from 'elysia'
import { Count, Described, Int, Named, Nullable, OneOf, Timestamp } from '../../base/http/schema.ts'
import type { Config } from '../config/config.ts'

/** Answer of `GET /healthz`. */
export const Alive = Named(
  'Alive',
  t.Object({
    status: t.Literal('ok', { description: 'The process answers.' }),
    version: t.String({ description: 'The version of the service.' }),
    uptime_seconds: t.Number({ minimum: 0, description: 'Seconds since the process started.' }),
  }),
)

const Epoch = t.String({
  description:
    'Identifies the sequence of positions. A new epoch begins when the journal has gone back to an earlier state.',
})
const EndSeq = Count('The last assigned position.')
const Problem = Described(Nullable(t.String()), 'Why it does not work; null when it does.')

/** Answer of `GET /readyz` while requests can be served; otherwise an UNAVAILABLE error names the reasons. */
export const Ready = Named(
  'Ready',
  t.Object({
    status: OneOf(['ready', 'degraded'], '`degraded`: reports are accepted, but something else does not work.'),
    dependencies: t.Record(
      t.String(),
      t.Object({
        ok: t.Boolean({ description: 'Whether it works.' }),
        latency_ms: t.Number({ minimum: 0, description: 'How long the check took, in milliseconds.' }),
        problem: Problem,
      }),
      { description: 'The stores, by name.' },
    ),
    journal: Described(
      Nullable(
        t.Object({
          epoch: Epoch,
          end_seq: EndSeq,
          gaps: t.Array(
            t.Object({
              after_seq: Count('The last position before the gap.'),
              through_seq: Count('The last position of the gap.'),
            }),
            { description: 'Positions whose rows were lost.' },
          ),
        }),
      ),
      'The log of all accepted activity, or of the first of its partitions that this node owns; null when it owns none.',
    ),
    partitions: t.Array(
      t.Object({
        partition: Count('The number of the partition.'),
        generation: Count('How often it was claimed by a node.'),
        epoch: Epoch,
        end_seq: EndSeq,
        loaded_seq: Count('ClickHouse has everything up to this position.'),
      }),
      { description: 'The partitions of the journal that this node owns.' },
    ),
    loops: t.Record(
      t.String(),
      t.Object({
        ok: t.Boolean({ description: 'False when it has been failing for several seconds.' }),
        failing_ms: Count('Milliseconds since it began to fail; 0 while it works.'),
        failures: Count('Failed rounds since the process started.'),
        problem: Problem,
      }),
      { description: 'The background loops, by name.' },
    ),
    consumers: t.Record(
      t.String(),
      t.Object({
        lag: Described(Nullable(Count('Rows.')), 'Rows not yet read; null: unknown.'),
        set_aside: Count(
          'Rows that it has left out since the process started, because it can never process them; the log names them.',
        ),
      }),
      { description: 'What reads the journal or the outbox, by name.' },
    ),
    clock: t.Object(
      {
        ok: t.Boolean({ description: 'False when it has jumped within the last hour.' }),
        off_by_ms: Int({
          minimum: Number.MIN_SAFE_INTEGER,
          maximum: Number.MAX_SAFE_INTEGER,
          description:
            'By how many milliseconds the system clock is ahead of the time that the service uses, after a jump that is not followed yet; negative when it is behind.',
        }),
        problem: Problem,
      },
      { description: 'The clock of the machine, as this process sees it.' },
    ),
    set_back: t.Array(
      t.Object({
        store: t.String({ description: 'The name of the store.' }),
        noticed_at: Described(Timestamp, 'When it was noticed.'),
        detail: t.String({ description: 'What was lost, and what the service does about it.' }),
      }),
      { description: 'Stores that were found to have gone back to an earlier state since the service started.' },
    ),
  }),
)

/**
 * Answer of `GET /api/v1/limits` (docs/api.md#request-limits). Sizes in bytes, lengths in characters; a rate of 0 is
 * unlimited.
 */
export const PublishedLimits = Named(
  'Limits',
  t.Object(
    {
      body_bytes: Count('A request body, decompressed.'),
      events_per_call: Count('Events of one call.'),
      event_payload_bytes: Count('The payload of one event.'),
      run_input_bytes: Count('The input of a run.'),
      run_output_bytes: Count('The output of a run.'),
      prompt_length: Count('The prompt of an agent with its placeholders replaced.'),
      type_length: Count('The type of an event.'),
      task_name_length: Count('The name of a task.'),
      external_id_length: Count('external_run_id and external_user_id.'),
      tags: Count('Tags of a run.'),
      tag_length: Count('One tag.'),
      json_depth: Count('Levels of nesting in JSON.'),
      otlp_bytes: Count('An OpenTelemetry export, decompressed.'),
      otlp_agents: Count('Agents of a workspace beyond which OpenTelemetry exports register none.'),
      rate_limits: t.Object(
        {
          ingest_requests_per_minute: Count('Requests that report activity.'),
          events_per_second: Count('Reported events.'),
          invokes_per_minute: Count('Calls of invoke.'),
          reads_per_minute: Count('Requests that read or manage.'),
          queries_per_minute: Count('SQL queries.'),
        },
        { description: 'Budgets of each key; 0: unlimited.' },
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
