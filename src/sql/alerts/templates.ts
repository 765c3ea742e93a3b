import { NIL_UUID } from '../../base/ids.ts'
import type { AlertTemplates } from './schema.ts'

/** Definitions to start from (docs/alerts.md). Each can be saved unchanged. */
export const ALERT_TEMPLATES: AlertTemplates = {
  items: [
    {
      template: 'error_rate',
      description: 'More than a tenth of the runs of an agent that ended in the last hour failed or timed out.',
      definition: {
        name: 'Error rate by agent',
        query: `SELECT agent_name, round(countIf(status IN ('failed', 'timed_out')) / count(), 4) AS error_rate, count() AS runs
FROM runs WHERE completed_at > {from:DateTime64(3)} AND completed_at <= {to:DateTime64(3)}
GROUP BY agent_name HAVING runs >= 5`,
        every: '5m',
        window: '1h',
        by: ['agent_name'],
        condition: { column: 'error_rate', op: '>', value: 0.1, recover_value: 0.05 },
        keep_firing_for: '10m',
      },
    },
    {
      template: 'cost_per_hour',
      description: 'The runs that began in the last hour have cost more than 10 USD.',
      definition: {
        name: 'Cost per hour',
        query: 'SELECT round(sum(cost_usd), 6) AS cost_usd FROM runs WHERE created_at > {from:DateTime64(3)}',
        every: '5m',
        window: '1h',
        condition: { column: 'cost_usd', op: '>', value: 10 },
        no_data: 'zero',
        renotify: '1d',
      },
    },
    {
      template: 'silent_agent',
      description: 'An agent that has reported in the last day has reported nothing for an hour.',
      definition: {
        name: 'Silent agents',
        query: `SELECT agent_id, max(received_at) AS last_event_at FROM events
WHERE received_at > {from:DateTime64(3)} AND agent_id != toUUID('${NIL_UUID}')
GROUP BY agent_id HAVING last_event_at < {to:DateTime64(3)} - INTERVAL 1 HOUR`,
        every: '5m',
        window: '1d',
        by: ['agent_id'],
        condition: 'any_row',
      },
    },
    {
      template: 'waiting_approvals',
      description: 'An approval or a question has waited for a person for more than 15 minutes.',
      definition: {
        name: 'Waiting for a person',
        query: `SELECT kind, count() AS waiting, min(requested_at) AS oldest FROM pauses
WHERE status = 'pending' AND requested_at < now() - INTERVAL 15 MINUTE GROUP BY kind`,
        every: '1m',
        by: ['kind'],
        condition: { column: 'waiting', op: '>', value: 0 },
        renotify: '1h',
      },
    },
    {
      template: 'p95_latency',
      description: 'The 95th percentile of the durations of an agent’s runs of the last hour is above a minute.',
      definition: {
        name: 'Slow runs by agent',
        query: `SELECT agent_name, quantileExact(0.95)(active_ms) AS p95_ms, count() AS runs
FROM runs WHERE completed_at > {from:DateTime64(3)} GROUP BY agent_name HAVING runs >= 5`,
        every: '5m',
        window: '1h',
        by: ['agent_name'],
        condition: { column: 'p95_ms', op: '>', value: 60_000 },
        for: '10m',
      },
    },
    {
      template: 'webhook_failures',
      description: 'More than half of the attempts to deliver to a webhook failed in the last 15 minutes.',
      definition: {
        name: 'Failing webhooks',
        query: `SELECT webhook_id, round(countIf(status != 'succeeded') / count(), 4) AS failure_rate, count() AS attempts
FROM deliveries WHERE at > {from:DateTime64(3)} GROUP BY webhook_id HAVING attempts >= 3`,
        every: '5m',
        window: '15m',
        by: ['webhook_id'],
        condition: { column: 'failure_rate', op: '>', value: 0.5 },
      },
    },
  ],
}
