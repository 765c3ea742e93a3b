import { systemClock } from '../../base/clock.ts'
import { ApiError } from '../../base/errors.ts'
import { mint } from '../../base/ids.ts'
import { createLog } from '../../base/log.ts'
import { createProgress } from '../../base/progress.ts'
import { StartError } from '../../base/start-error.ts'
import { readConfig } from '../../config/config.ts'
import { KeyRing } from '../../keys/key-ring.ts'
import { KeyStore } from '../../keys/store.ts'
import { openPostgres } from '../../service/stores.ts'
import { runMain } from '../shared/main.ts'
import { readArgs } from './args.ts'
import { runCommand } from './commands.ts'
import { shown } from './shown.ts'

/** `bun run keys`: see `args.ts`. */
async function main(): Promise<void> {
  const options = readArgs(Bun.argv.slice(2))
  const log = createLog('error')
  const progress = createProgress((line) => void process.stderr.write(line))
  const { sql, isAlone, close } = await openPostgres(readConfig(), { log, progress })
  try {
    // Never started: it has no lease of its own, and only notifies processes that have one.
    const instanceId = crypto.randomUUID()
    const ring = new KeyRing({ sql, heartbeat: sql, clock: systemClock, log, instanceId, exclusive: isAlone })
    const keys = new KeyStore({ sql, ring, clock: systemClock })
    const answer = await runCommand({ sql, keys, clock: systemClock, mint }, options.command)
    process.stdout.write(options.json ? `${JSON.stringify(Object.values(answer)[0], null, 2)}\n` : shown(answer))
  } finally {
    await close()
  }
}

await runMain(main, [StartError, ApiError])
