import { resolve } from 'node:path'
import { createLog } from '../../base/log.ts'
import { script } from '../../base/script.ts'
import { StartError } from '../../base/start-error.ts'
import { readConfig } from '../../config/config.ts'
import { CliError } from '../shared/error.ts'
import { runMain } from '../shared/main.ts'
import { HELP_OPTION, helpText, type Options, parseOptions } from '../shared/options.ts'
import { takeBackup } from './backup.ts'
import { createReport } from './report.ts'
import { restoreBackup } from './restore.ts'

const { stdout, stderr } = process

const OPTIONS = {
  backup: {
    'no-check': { type: 'boolean', help: 'does not verify the backup by restoring it into a temporary directory' },
    help: HELP_OPTION,
  },
  restore: {
    signature: {
      type: 'string',
      value: '<hex>',
      help: 'refuses every backup except the one for which backup printed this signature',
    },
    help: HELP_OPTION,
  },
} as const

const HELP = {
  backup: helpText({
    summary:
      'Copies all data of the service in DATA_DIR into a new folder, at one position, whether it is running or not.',
    usage: [script('backup <folder> [options]')],
    options: OPTIONS.backup,
    notes: `
Finds the service by DATA_DIR (./data). A running service pauses reporting for a moment; the last line says for how long.
The folder contains keys and secrets: protect it like DATA_DIR. With DATABASE_URL or CLICKHOUSE_URL, see docs/operations.md.
`,
  }),
  restore: helpText({
    summary: 'Restores a backup into an empty DATA_DIR.',
    usage: [script('restore <folder> [options]')],
    options: OPTIONS.restore,
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
  const options: Options = OPTIONS[command]
  const { values, positionals } = parseOptions(argv, options, { allowPositionals: true })
  if (values.help === true) {
    stdout.write(help)
    return 0
  }
  if (positionals.length !== 1) throw new CliError(`expected one folder.\n${help}`, 2)
  const folder = resolve(positionals[0]!)
  const log = createLog('error')
  const report = createReport(stderr)
  const config = readConfig()
  if (command === 'backup') {
    const isUnchecked = values['no-check'] === true
    const manifest = await takeBackup({ config, folder, isVerified: !isUnchecked, log, report })
    const checked = isUnchecked ? '' : ', verified by restoring it'
    stdout.write(
      `backed up to ${folder}: everything up to position ${manifest.end_seq}; reporting was paused for ${manifest.held_ms} ms${checked}\nsignature, to keep elsewhere: ${manifest.signature}\n`,
    )
    return 0
  }
  const signature = values.signature as string | undefined
  const manifest = await restoreBackup({ folder, dataDir: config.dataDir, signature, log, report })
  stdout.write(`restored the backup of ${manifest.taken_at} into ${config.dataDir}: start the service\n`)
  return 0
}

await runMain(main, [StartError])
