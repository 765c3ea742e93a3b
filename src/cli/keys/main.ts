import { systemClock } from '../../base/clock.ts'
import { ApiError } from '../../base/errors.ts'
import { mint } from '../../base/ids.ts'
import { createLog } from '../../base/log.ts'
import { createProgress } from '../../base/progress.ts'
import { StartError } from '../../base/start-error.ts'
import { readConfig } from '../../service/config/config.ts'
import { openPostgres } from '../../service/pipeline/stores.ts'
import { KeyRing } from '../../tenants/keys/key-ring.ts'
import { KeyStore } from '../../tenants/keys/store.ts'
import { runMain } from '../shared/main.ts'
import { Output } from '../shared/output.ts'
import { PLAIN_LOOK, renderTable, renderVertical } from '../shared/table.ts'
import { readArgs } from './args.ts'
import { type KeyList, type KeysAnswer, runCommand } from './commands.ts'

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
    const text = options.json ? `${JSON.stringify(Object.values(answer)[0], null, 2)}\n` : formatAnswer(answer)
    await new Output().write(text)
  } finally {
    await close()
  }
}

const text = (name: string) => ({ name, type: 'String' })

/** Formats a result for people. */
function formatAnswer(answer: KeysAnswer): string {
  if ('list' in answer) return formatKeyList(answer.list)
  if ('revoked' in answer) {
    const { key_id, revoked_at } = answer.revoked
    return `key ${key_id} was revoked at ${revoked_at}\n`
  }
  const { made } = answer
  const fields = ['workspace_id', 'key_id', 'type', 'agent_id', 'name', 'expires_at', 'key'] as const
  const given = fields.filter((field) => made[field] !== null)
  const card = renderVertical({ columns: given.map(text), rows: [given.map((field) => made[field])] }, PLAIN_LOOK)
  return `${card.split('\n').slice(1).join('\n')}\nThe key is shown only once: store it safely.\n`
}

function formatKeyList({ workspaces, truncated }: KeyList): string {
  const columns = [
    'workspace',
    'workspace_id',
    'key',
    'key_id',
    'type',
    'name',
    'status',
    'created_at',
    'last_used_at',
    'expires_at',
  ]
  const rows = workspaces.flatMap(({ name, workspace_id, status, keys }) => {
    const workspace = [status === 'active' ? name : `${name} (${status})`, workspace_id]
    if (keys.length === 0) return [[...workspace, ...columns.slice(2).map(() => '')]]
    return keys.map((key) => [
      ...workspace,
      `${key.prefix}…${key.last4}`,
      key.key_id,
      key.type,
      key.name ?? '',
      key.status,
      key.created_at,
      key.last_used_at ?? '',
      key.expires_at ?? '',
    ])
  })
  if (rows.length === 0) return 'There is no workspace yet: the first start of the service creates one.\n'
  const table = renderTable({ columns: columns.map(text), rows }, PLAIN_LOOK) ?? ''
  return truncated ? `${table}The list is incomplete; select a workspace with --workspace.\n` : table
}

await runMain(main, [StartError, ApiError])
