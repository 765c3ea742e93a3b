import { systemClock } from '../clock.ts'
import { readConfig } from '../config.ts'
import { ApiError } from '../http/errors.ts'
import { mint } from '../ids.ts'
import { KeyRing } from '../keys/key-ring.ts'
import { KeyStore } from '../keys/store.ts'
import { createLog } from '../log.ts'
import { createProgress } from '../ops/progress.ts'
import { StartError } from '../ops/start-error.ts'
import { openPostgres } from '../stores.ts'
import { HELP, KeysError, readArgs } from './args.ts'
import { runCommand } from './commands.ts'
import { shown } from './shown.ts'

const { stdout, stderr } = process

/** `bun run keys`: see {@link HELP}. */
async function main(): Promise<void> {
  const options = readArgs(Bun.argv.slice(2))
  if (options === 'help') {
    stdout.write(HELP)
    return
  }
  const log = createLog('error')
  const progress = createProgress((line) => void stderr.write(line))
  const { sql, isAlone, close } = await openPostgres(readConfig(), { log, progress })
  try {
    // Never started: it holds no lease of its own, and only tells those that do.
    const instanceId = crypto.randomUUID()
    const ring = new KeyRing({ sql, heartbeat: sql, clock: systemClock, log, instanceId, exclusive: isAlone })
    const keys = new KeyStore({ sql, ring, clock: systemClock })
    const answer = await runCommand({ sql, keys, clock: systemClock, mint }, options.command)
    stdout.write(options.json ? `${JSON.stringify(Object.values(answer)[0], null, 2)}\n` : shown(answer))
  } finally {
    await close()
  }
}

try {
  await main()
  process.exit(0)
} catch (error) {
  const isExpected = error instanceof KeysError || error instanceof StartError || error instanceof ApiError
  if (!isExpected) throw error
  stderr.write(`${error.message}\n`)
  process.exit(error instanceof KeysError ? error.exitCode : 1)
}
