import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '../../base/log.ts'
import type { Progress } from '../../base/progress.ts'
import { parseConfig } from '../../service/config/config.ts'
import { startService } from '../../service/service.ts'
import type { Environment } from '../shared/connection.ts'
import type { HistoryClock } from './history.ts'
import type { ModelServer } from './hosted/model-server.ts'

/** A service that the demo has started, with a key of its workspace. */
interface OwnService {
  readonly url: string
  readonly key: string
  /** Stops it and deletes its data. */
  stop(): Promise<void>
}

interface OwnServiceOptions {
  /** Settings such as the port. The stores and the model are always the demo's own. */
  readonly env: Environment
  readonly clock: HistoryClock
  readonly model: ModelServer
  readonly progress: Progress
}

/** Settings of a real service that the demo must not use: its stores, keys and cluster. */
const WITHHELD = [
  'DATABASE_URL',
  'CLICKHOUSE_URL',
  'CLICKHOUSE_CLUSTER',
  'NATS_URL',
  'CLUSTER_SECRET',
  'INSTANCE_URL',
  'NATS_REPLICAS',
  'WORKERS',
  'JOURNAL_PARTITIONS',
  'OPENAI_API_KEY',
  'BOOTSTRAP_WORKSPACE_KEY',
]

/** Starts a service with its data in a temporary folder. @throws StartError, ConfigError */
export async function startOwnService({ env, clock, model, progress }: OwnServiceOptions): Promise<OwnService> {
  const folder = await mkdtemp(join(tmpdir(), 'agent-run-demo-'))
  // Postgres refuses to run as root, so it may run as another user, who must be able to enter the folder.
  await chmod(folder, 0o755)
  const remove = () => rm(folder, { recursive: true, force: true })
  try {
    const config = parseConfig({
      ...env,
      ...Object.fromEntries(WITHHELD.map((name) => [name, ''])),
      DATA_DIR: join(folder, 'data'),
      OPENAI_BASE_URL: model.modelUrl,
      EGRESS_ALLOW: model.host,
      // History arrives faster than one agent reports.
      RATE_LIMIT_INGEST_REQUESTS_PER_MINUTE: '0',
    })
    const log = createLog(
      'error',
      (line) => process.stderr.write(line),
      process.stderr.isTTY === true ? 'text' : 'json',
    )
    const service = await startService(config, { log, progress, clock })
    const stop = async () => {
      await service.stop()
      await remove()
    }
    return { url: service.url, key: service.freshKey ?? '', stop }
  } catch (error) {
    await remove()
    throw error
  }
}
