import { realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { resolveLibchdb } from 'chdb/libchdb'

/** A session of the engine: settings, parameters and a current database. */
export type EngineConnection = { readonly brand: unique symbol }
export type Cursor = { readonly brand: unique symbol }
/** Settings are passed like on the command line of `clickhouse local`. */
export type Connect = (settings: Readonly<Record<string, string>>) => EngineConnection

export interface NativeResult {
  readonly bytes: Buffer<ArrayBuffer>
  readonly elapsed: number
  readonly rowsRead: number
  readonly bytesRead: number
}

/** The addon's functions in use. Promises settle when the engine is done; the work runs on a pool thread. */
export interface Native {
  CreateConnection(path: string, args: readonly string[]): EngineConnection
  CloseConnection(connection: EngineConnection): void
  QueryWithConnection(connection: EngineConnection, text: string, format: string): string
  QueryAsyncConnection(connection: EngineConnection, text: string, format: string): Promise<NativeResult>
  DurableClassifyAsync(
    connection: EngineConnection,
    text: string,
    database: string,
  ): Promise<{ statementCount: number; queryClass: number }>
  /** Plans the query on the calling thread: its scalar subqueries have run when this returns. */
  StreamQuery(connection: EngineConnection, text: string, format: string): Cursor
  /** The next block of the result, a complete document in the format. Must not be called while another call is pending. */
  StreamFetch(cursor: Cursor): Promise<{ readonly done: boolean; readonly bytes: Buffer<ArrayBuffer> }>
  /**
   * Frees the cursor. Must not be called while a fetch is pending. Before the first fetch it blocks until the query ends or
   * is killed.
   */
  StreamCancel(cursor: Cursor): void
}

/**
 * Where a thread loads the engine from. It uses the addon directly, because the package's `Session` runs parameterised
 * queries one at a time and does not expose the statement classifier. All threads of the process share one engine.
 */
export interface EngineLocation {
  /** The engine's data; the first connection locks it. */
  readonly directory: string
  readonly configFile: string
}

/** @throws Error when this platform has no engine */
export function loadAddon({ directory, configFile }: EngineLocation): { native: Native; connect: Connect } {
  const native = createRequire(import.meta.url)(join(dirname(engineLibrary()), 'chdb_node.node')) as Native
  return {
    native,
    connect: (settings) =>
      native.CreateConnection(directory, [
        `--config-file=${configFile}`,
        ...Object.entries(settings).map(([name, value]) => `--${name}=${value}`),
      ]),
  }
}

function engineLibrary(): string {
  return realpathSync(resolveLibchdb().path)
}
