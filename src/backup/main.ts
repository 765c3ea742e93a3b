import { resolve } from 'node:path'
import { CliError } from '../cli/error.ts'
import { parseOptions } from '../cli/options.ts'
import { readConfig } from '../config.ts'
import { createLog } from '../log.ts'
import { StartError } from '../ops/start-error.ts'
import { takeBackup } from './backup.ts'
import { createReport } from './report.ts'
import { restoreBackup } from './restore.ts'

const { stdout, stderr } = process

const HELP = {
  backup: `Copies all data of the service in DATA_DIR into a new folder, at one position, whether it is running or not.

  bun run backup <folder>

  --no-check   does not restore the copy on the side to see that it works
  --help       this text

Finds the service by DATA_DIR (./data). While it is running, reporting is held up for a moment: the last line says for how long.
The folder holds keys and secrets: keep it as safe as DATA_DIR. With DATABASE_URL or CLICKHOUSE_URL see docs/operations.md.
`,
  restore: `Puts a backup into an empty DATA_DIR.

  bun run restore <folder>

  --help       this text

Start the service with this DATA_DIR afterwards. It begins a new epoch: feeds and SQL (table gaps) say that what came after the
backup is missing. Keys that were revoked since the backup work again: revoke them again.
`,
}

const OPTIONS = { help: { type: 'boolean' }, 'no-check': { type: 'boolean' } } as const

/** `bun run backup` and `bun run restore`: see {@link HELP}. */
async function main(): Promise<void> {
  const [command = '', ...argv] = Bun.argv.slice(2)
  if (command !== 'backup' && command !== 'restore') throw new CliError('expected backup or restore', 2)
  const help = HELP[command]
  const { values, positionals } = parseOptions(argv, OPTIONS, { help, allowPositionals: true })
  if (values.help === true) {
    stdout.write(help)
    return
  }
  const isUnchecked = values['no-check'] === true
  if (isUnchecked && command === 'restore') throw new CliError('--no-check is for bun run backup', 2)
  if (positionals.length !== 1) throw new CliError(`expected one folder.\n${help}`, 2)
  const folder = resolve(positionals[0]!)
  const log = createLog('error')
  const report = createReport(stderr)
  const config = readConfig()
  if (command === 'backup') {
    const manifest = await takeBackup({ config, folder, isVerified: !isUnchecked, log, report })
    const checked = isUnchecked ? '' : ', checked by restoring it'
    stdout.write(
      `backed up to ${folder}: everything up to position ${manifest.end_seq}; reporting was held up for ${manifest.held_ms} ms${checked}\n`,
    )
    return
  }
  const manifest = await restoreBackup({ folder, dataDir: config.dataDir, log, report })
  stdout.write(`restored the backup of ${manifest.taken_at} into ${config.dataDir}: start the service\n`)
}

try {
  await main()
  process.exit(0)
} catch (error) {
  const isExpected = error instanceof CliError || error instanceof StartError
  if (!isExpected) throw error
  stderr.write(`${error.message}\n`)
  process.exit(error instanceof CliError ? error.exitCode : 1)
}
