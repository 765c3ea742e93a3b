import fs from 'node:fs'
import { join } from 'node:path'
import { createLog } from '../../src/base/log.ts'
import { remoteClickHouse } from '../../src/stores/clickhouse/backend.ts'
import { createColumnarClient } from '../../src/stores/clickhouse/client.ts'
import { connectPostgres } from '../../src/stores/postgres/connect.ts'
import type { TestService } from './service.ts'

type Stores = Pick<TestService, 'databaseUrl' | 'clickhouseUrl' | 'dataDir'>

/** Where the stores have something of a run; `mark` is in everything that was reported for it. */
export async function placesOf(service: Stores, workspaceId: string, runId: string, mark: string): Promise<string[]> {
  const sql = connectPostgres(service.databaseUrl, { log: createLog('error'), max: 1 })
  const columnar = createColumnarClient(remoteClickHouse(service.clickhouseUrl))
  const places: string[] = []
  const tables = await sql<{ table: string }[]>`
    select table_name as table from information_schema.columns
    where table_schema = 'public' and column_name = 'run_id' and table_name <> 'run_erasures'`
  for (const { table } of tables) {
    const rows = await sql`
      select from ${sql(table)} where run_id = ${runId} and workspace_id = ${workspaceId} limit 1`
    if (rows.length > 0) places.push(table)
  }
  const waiting = await sql`select from outbox where body::text like ${`%${mark}%`}`
  if (waiting.length > 0) places.push('outbox')
  const columns = await columnar.query<{ table: string }>(
    `select table from system.columns where database = currentDatabase() and name = 'run_id'
     and table in (select name from system.tables where database = currentDatabase() and engine like '%MergeTree')`,
  )
  for (const { table } of columns) {
    const rows = await columnar.query(
      `select 1 as one from ${table} where run_id = {run:UUID} and workspace_id = {workspace:UUID} limit 1`,
      { params: { run: runId, workspace: workspaceId } },
    )
    if (rows.length > 0) places.push(`clickhouse ${table}`)
  }
  const dir = join(service.dataDir, 'journal')
  const files = fs.readdirSync(dir, { recursive: true, encoding: 'utf8' }).map((name) => join(dir, name))
  if (files.some((file) => fs.statSync(file).isFile() && fs.readFileSync(file).includes(mark))) places.push('journal')
  await sql.end({ timeout: 1 })
  return places.sort()
}
