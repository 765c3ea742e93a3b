import { expect, test } from 'bun:test'
import { readStates } from '../../src/sql/alerts/history.ts'
import { NO_STATES } from '../../src/sql/alerts/states.ts'
import { freshColumnarDatabase } from '../support/columnar.ts'

/** The states of an alert before a time, as its transitions in ClickHouse say (`sql/alerts/history.ts`). */

test('a series has the value of its last transition, also when that is null', async () => {
  const { client } = await freshColumnarDatabase()
  const [workspaceId, alert_id] = [crypto.randomUUID(), crypto.randomUUID()]
  const rows = [
    `'firing', 'ok', 7, '2026-01-01 00:01:00', 1`,
    `'no_data', 'firing', null, '2026-01-01 00:02:00', 2`,
    `'ok', 'no_data', 3, '2026-01-01 00:09:00', 3`,
  ].map((row) => `('${workspaceId}', '${alert_id}', '{}', ${row})`)
  await client.command(
    `insert into alert_states (workspace_id, alert_id, series, state, previous_state, value, at, seq) values ${rows}`,
  )
  const before = Date.parse('2026-01-01T00:05:00Z')
  const states = await readStates(client, { workspaceId, alert_id, by: [], before, states: NO_STATES })
  expect([...states.values()]).toEqual([
    {
      series: [],
      state: 'no_data',
      value: null,
      since: Date.parse('2026-01-01T00:02:00Z'),
      notifiedAt: Date.parse('2026-01-01T00:01:00Z'),
    },
  ])
})
