import { ClickHouseFailure, type Statement } from '../clickhouse/protocol.ts'
import type { StreamQuery } from './analytics.ts'
import { readSettings, takenSettings } from './clickhouse-settings.ts'
import { emulateServer } from './introspection.ts'
import type { EngineSetting } from './parser.ts'

/** Properties of the engine. */
interface KnownEngine {
  readonly version: string
  readonly settings: ReadonlyMap<string, EngineSetting>
}

/** Keywords that may end a query after a column named FORMAT. */
const KEYWORDS = new Set(['ASC', 'DESC', 'FINAL', 'NULL', 'FIRST', 'LAST'])

/**
 * Formats written row by row, of any length. Formats with progress are left out: they would reveal how much the engine
 * reads, which includes other tenants' rows.
 */
const STREAMED = new Set(
  `JSON JSONStrings JSONCompact JSONCompactStrings JSONEachRow JSONLines JSONL NDJSON JSONStringsEachRow JSONCompactEachRow
   JSONCompactEachRowWithNames JSONCompactEachRowWithNamesAndTypes JSONCompactStringsEachRow
   JSONCompactStringsEachRowWithNames JSONCompactStringsEachRowWithNamesAndTypes CSV CSVWithNames CSVWithNamesAndTypes
   TSV TSVWithNames TSVWithNamesAndTypes TSVRaw TabSeparated TabSeparatedWithNames TabSeparatedWithNamesAndTypes
   TabSeparatedRaw TSKV RowBinary RowBinaryWithNames RowBinaryWithNamesAndTypes Native MsgPack BSONEachRow Parquet
   ArrowStream Null`.split(/\s+/),
)

const DOCUMENTS = new Set(
  `JSONColumns JSONCompactColumns JSONColumnsWithMetadata JSONObjectEachRow PrettyJSONEachRow PrettyNDJSON Pretty
   PrettyCompact PrettyCompactMonoBlock PrettyCompactNoEscapes PrettyMonoBlock PrettyNoEscapes PrettySpace
   PrettySpaceNoEscapes Vertical Values XML Markdown SQLInsert Arrow ORC Avro`.split(/\s+/),
)

/**
 * Translates a statement of ClickHouse's protocol. Refuses what is not supported the way ClickHouse does. The guard
 * decides later whether the query is allowed.
 *
 * @param normalForm the query as the engine prints it, so that its clauses can be recognized
 * @throws ClickHouseFailure
 */
export function readRequest(statement: Statement, normalForm: string, engine: KnownEngine): StreamQuery {
  const database = statement.database || 'default'
  if (database !== 'default' && database !== 'system') {
    throw new ClickHouseFailure(81, 'UNKNOWN_DATABASE', `Database ${database} does not exist`)
  }
  const clause = / FORMAT (?:(\w+)|`(\w+)`)$/.exec(normalForm)
  const named = clause?.[1] ?? clause?.[2] ?? 'ASC'
  const isClause = clause !== null && !KEYWORDS.has(named)
  const format = isClause ? named : statement.defaultFormat
  const isDocument = DOCUMENTS.has(format)
  if (!isDocument && !STREAMED.has(format))
    throw new ClickHouseFailure(73, 'UNKNOWN_FORMAT', `Unknown format ${format}`)
  const server = { version: engine.version, database, settings: takenSettings(engine.settings) }
  return {
    query: emulateServer(isClause ? normalForm.slice(0, clause.index) : normalForm, server),
    outputFormat: format,
    isDocument,
    parameters: statement.parameters,
    ...readSettings(statement.settings, engine.settings),
  }
}
