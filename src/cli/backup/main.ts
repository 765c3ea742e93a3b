import { resolve } from 'node:path'
import { createLog } from '../../base/log.ts'
import { script } from '../../base/script.ts'
import { StartError } from '../../base/start-error.ts'
import { readConfig } from '../../service/config/config.ts'
import { CliError } from '../shared/error.ts'
import { runMain } from '../shared/main.ts'
import { type Command, helpText, type Options, parseOptions } from '../shared/options.ts'
import { takeBackup } from './backup.ts'
import { createReport } from './report.ts'
import { restoreBackup } from './restore.ts'

const COMMANDS = {
  backup: {
    summary:
      'Copies all data of the service in DATA_DIR into a new folder, at one position, whether it is running or not.',
    usage: [script('backup <folder> [options]')],
    options: {
      'no-check': { type: 'boolean', help: 'does not verify the backup by restoring it into a temporary directory' },
    },
    notes: `
Finds the service by DATA_DIR (./data). A running service pauses reporting for a moment; the last line says for how long.
The folder contains keys and secrets: protect it like DATA_DIR. With DATABASE_URL or CLICKHOUSE_URL, see docs/operations.md.
`,
  },
  restore: {
    summary: 'Restores a backup into an empty DATA_DIR.',
    usage: [script('restore <folder> [options]')],
    options: {
      signature: {
        type: 'string',
        value: '<hex>',
        help: 'refuses every backup except the one for which backup printed this signature',
      },
    },
    notes: `
Start the service with this DATA_DIR afterwards. It begins a new epoch: feeds and SQL (table gaps) report that everything
after the backup is missing. Keys that were revoked after the backup work again: revoke them again.
`,
  },
} as const

/** `bun run backup` and `bun run restore`. */
async function main(): Promise<void> {
  const [name = '', ...argv] = Bun.argv.slice(2)
  if (name !== 'backup' && name !== 'restore') throw new CliError('expected backup or restore', 2)
  const command: Command<Options> = COMMANDS[name]
  const { values, positionals } = parseOptions(argv, command, { allowPositionals: true })
  if (positionals.length !== 1) throw new CliError(`expected one folder.\n${helpText(command)}`, 2)
  const folder = resolve(positionals[0]!)
  const { stdout, stderr } = process
  const log = createLog('error')
  const report = createReport(stderr)
  const config = readConfig()
  if (name === 'restore') {
    const { signature } = values as { signature?: string }
    const manifest = await restoreBackup({ folder, dataDir: config.dataDir, signature, log, report })
    stdout.write(`restored the backup of ${manifest.taken_at} into ${config.dataDir}: start the service\n`)
    return
  }
  const { 'no-check': isUnchecked = false } = values as { 'no-check'?: boolean }
  const manifest = await takeBackup({ config, folder, isVerified: !isUnchecked, log, report })
  const checked = isUnchecked ? '' : ', verified by restoring it'
  stdout.write(
    `backed up to ${folder}: everything up to position ${manifest.end_seq}; reporting was paused for ${manifest.held_ms} ms${checked}\nsignature, to keep elsewhere: ${manifest.signature}\n`,
  )
}

await runMain(main, [StartError])
