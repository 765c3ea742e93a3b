import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import type { TestService } from '../support/service.ts'
import { atEnd } from '../support/teardown.ts'

/** ClickHouse's official client on `/clickhouse/`, closed after the last test. */
export function clientOf({ url, workspaceKey }: TestService, options: object = {}): ClickHouseClient {
  const log = { level: ClickHouseLogLevel.OFF }
  const login = { username: 'anyone', password: workspaceKey }
  const client = createClient({ url, pathname: '/clickhouse/', ...login, log, ...options })
  atEnd(() => client.close())
  return client
}

export async function rowsOf(client: ClickHouseClient, query: string, query_params: Record<string, unknown> = {}) {
  const result = await client.query({ query, query_params, format: 'JSONEachRow' })
  return result.json<Record<string, unknown>>()
}
