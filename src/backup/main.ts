import { resolve } from 'node:path'
import { CliError } from '../cli/error.ts'
import { runMain } from '../cli/main.ts'
import { HELP_OPTION, helpText, parseOptions } from '../cli/options.ts'
import { readConfig } from '../config.ts'
import { createLog } from '../log.ts'
import { StartError } from '../ops/start-error.ts'
import { takeBackup } from './backup.ts'
import { createReport } from './report.ts'
import { restoreBackup } from './restore.ts'

const { stdout, stderr } = process

const OPTIONS = {
  'no-check': { type: 'boolean', help: 'does not verify the backup by restoring it into a temporary directory' },
  help: HELP_OPTION,
} as const

const HELP = {
  backup: helpText({
    summary:
      'Copies all data of the service in DATA_DIR into a new folder, at one position, whether it is running or not.',
    usage: ['bun run backup <folder> [options]'],
    options: OPTIONS,
    notes: `
Finds the service by DATA_DIR (./data). A running service pauses reporting for a moment; the last line says for how long.
The folder contains keys and secrets: protect it like DATA_DIR. With DATABASE_URL or CLICKHOUSE_URL, see docs/operations.md.
`,
  }),
  restore: helpText({
    summary: 'Restores a backup into an empty DATA_DIR.',
    usage: ['bun run restore <folder>'],
    options: { help: HELP_OPTION },
    notes: `
Start the service with this DATA_DIR afterwards. It begins a new epoch: feeds and SQL (table gaps) report that everything
after the backup is missing. Keys that were revoked after the backup work again: revoke them again.
`,
  }),
}

/** `bun run backup` and `bun run restore`: see {@link HELP}. */
async function main(): Promise<number> {
  const [command = '', ...argv] = Bun.argv.slice(2)
  if (command !== 'backup' && command !== 'restore') throw new CliError('expected backup or restore', 2)
  const help = HELP[command]
  const { values, positionals } = parseOptions(argv, OPTIONS, { allowPositionals: true })
  if (values.help === true) {
    stdout.write(help)
    return 0
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
    const checked = isUnchecked ? '' : ', verified by restoring it'
    stdout.write(
      `backed up to ${folder}: everything up to position ${manifest.end_seq}; reporting was paused for ${manifest.held_ms} ms${checked}\n`,
    )
    return 0
  }
  const manifest = await restoreBackup({ folder, dataDir: config.dataDir, log, report })
  stdout.write(`restored the backup of ${manifest.taken_at} into ${config.dataDir}: start the service\n`)
  return 0
}

await runMain(main, [StartError])
