import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { mintToken } from '../../src/tenants/keys/token.ts'
import { newAgent } from '../support/api.ts'
import { OPERATOR_TOKEN, spawnService, startTestService } from '../support/service.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

/** `bun run keys` as a real process: beside a running service, without one, and on an external database. */

const MAIN = join(import.meta.dir, '..', '..', 'src', 'cli', 'keys', 'main.ts')

async function runKeys(env: Record<string, string>, ...args: string[]) {
  const child = Bun.spawn([process.execPath, MAIN, ...args], {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  atEnd(async () => child.kill('SIGKILL'))
  const [stdout, stderr, exitCode] = await Promise.all([
    Bun.readableStreamToText(child.stdout),
    Bun.readableStreamToText(child.stderr),
    child.exited,
  ])
  return { exitCode, stdout, stderr }
}

async function json(env: Record<string, string>, ...args: string[]) {
  const { exitCode, stdout, stderr } = await runKeys(env, ...args, '--json')
  if (exitCode !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

const statusWith = async (url: string, key: string) =>
  (await fetch(`${url}/api/v1/agents`, { headers: { authorization: `Bearer ${key}` } })).status

test('with embedded stores: a created key works, and a revoked or rotated key is invalid once the command returns', async () => {
  const service = await spawnService()
  const env = { DATA_DIR: service.dataDir }
  const listed = await json(env)
  expect(listed.truncated).toBe(false)
  const [workspace] = listed.workspaces
  expect([workspace.name, workspace.status, workspace.keys.length]).toEqual(['default', 'active', 1])
  expect(service.workspaceKey).toStartWith(workspace.keys[0].prefix)

  const made = await json(env, 'create', '--name', 'regained', '--expires-at', '2099-01-01T00:00:00Z')
  expect([made.name, made.type, made.workspace_id]).toEqual(['regained', 'workspace', workspace.workspace_id])
  expect(await statusWith(service.url, made.key)).toBe(200)
  for (let i = 0; i < 3; i++) {
    const { key, key_id } = await json(env, 'create')
    expect(await statusWith(service.url, key)).toBe(200)
    expect((await json(env, 'revoke', key_id)).status).toBe('revoked')
    expect(await statusWith(service.url, key)).toBe(401)
  }

  const rotated = await json(env, 'rotate', made.key_id)
  expect([await statusWith(service.url, made.key), await statusWith(service.url, rotated.key)]).toEqual([401, 200])
  const graceful = await json(env, 'rotate', rotated.key_id, '--grace-seconds', '600')
  expect([await statusWith(service.url, rotated.key), await statusWith(service.url, graceful.key)]).toEqual([200, 200])

  const { agentId } = await newAgent(service.api)
  const ofAgent = await json(env, 'create', '--agent', agentId)
  expect([ofAgent.type, ofAgent.agent_id]).toEqual(['agent', agentId])

  service.kill('SIGKILL')
  await service.exited
  await withoutService(service, workspace.workspace_id, graceful)
})

/** The same directory after its service was killed. */
async function withoutService(
  service: { dataDir: string; workspaceKey: string },
  workspaceId: string,
  last: { key: string; key_id: string },
): Promise<void> {
  const env = { DATA_DIR: service.dataDir }
  const table = await runKeys(env)
  // On a busy machine it says that it starts Postgres.
  const said = table.stderr.replace(/^ *starting Postgres … \d+ s\n/gm, '').trim()
  expect([table.exitCode, said]).toEqual([0, ''])
  expect(table.stdout).toContain(workspaceId)
  expect(table.stdout).toContain(last.key_id)
  expect(table.stdout).not.toContain('revoked')
  expect((await runKeys(env, 'list', '--all')).stdout).toContain('revoked')

  const made = await json(env, 'create', '--workspace', 'default')
  expect(await runKeys(env, 'revoke', last.key_id)).toMatchObject({
    exitCode: 0,
    stdout: expect.stringContaining(last.key_id),
  })
  // No process is left running.
  expect(existsSync(join(service.dataDir, 'postgres', 'cluster', 'postmaster.pid'))).toBe(false)

  const given = mintToken('workspace').text
  const again = await spawnService({ DATA_DIR: service.dataDir, BOOTSTRAP_WORKSPACE_KEY: given })
  expect([await statusWith(again.url, made.key), await statusWith(again.url, last.key)]).toEqual([200, 401])
  expect(again.output().stdout).toContain('BOOTSTRAP_WORKSPACE_KEY is ignored')
  expect(again.output().stdout).not.toContain(given)
  expect(again.output().stderr).toContain('BOOTSTRAP_WORKSPACE_KEY is ignored')
}

test('on an external database: several workspaces, and a revocation that has reached every process', async () => {
  const service = await startTestService()
  const env = { DATABASE_URL: service.databaseUrl }
  const { data: other } = await service.api('POST', '/api/v1/workspaces', { name: 'other' }, { key: OPERATOR_TOKEN })
  const refused = await runKeys(env, 'create')
  expect([refused.exitCode, refused.stderr]).toEqual([1, expect.stringContaining(other.workspace_id)])

  const { key, key_id } = await json(env, 'create', '--workspace', 'other')
  expect(await statusWith(service.url, key)).toBe(200)
  await json(env, 'revoke', key_id)
  expect(await statusWith(service.url, key)).toBe(401)
  expect((await json(env, 'list', '--workspace', other.workspace_id)).workspaces).toHaveLength(1)
  expect((await runKeys(env, 'list', '--workspace', 'none')).exitCode).toBe(1)
  expect(await runKeys(env, 'revoke', crypto.randomUUID())).toMatchObject({ exitCode: 1, stdout: '' })
  const twice = await runKeys(env, 'rotate', key_id)
  expect([twice.exitCode, twice.stderr]).toEqual([1, 'the key has been revoked; create a new one\n'])
})

test('reports a missing database and creates nothing', async () => {
  const parent = await temporaryDirectory()
  const { exitCode, stderr } = await runKeys({ DATA_DIR: join(parent, 'none') })
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining('there is no database in DATA_DIR')])
  expect(existsSync(join(parent, 'none'))).toBe(false)
})

test.each([
  ['an unknown command', ['remove'], 'unknown command remove'],
  ['a misspelt command', ['revok'], 'unknown command revok. Did you mean revoke?'],
  ['an unknown option', ['--key', 'x'], 'unknown option --key'],
  ['a misspelt option', ['--workspce', 'x'], 'unknown option --workspce. Did you mean\n  --workspace'],
  ['an option of another command', ['revoke', crypto.randomUUID(), '--name', 'x'], 'revoke does not take --name'],
  ['a key instead of its id', ['revoke', mintToken('workspace').text], 'key_id must be an id'],
  ['no key', ['rotate'], 'rotate takes one key_id'],
  ['an impossible grace', ['rotate', crypto.randomUUID(), '--grace-seconds', '-1'], '--grace-seconds'],
] as const)('%s: exit code 2', async (_name, args, message) => {
  const { exitCode, stdout, stderr } = await runKeys({ DATA_DIR: '/nowhere' }, ...args)
  expect([exitCode, stdout, stderr]).toEqual([2, '', expect.stringContaining(message)])
  expect(stderr).not.toContain('svc_ws_')
})

test('--help lists the commands', async () => {
  const { exitCode, stdout } = await runKeys({}, '--help')
  expect(exitCode).toBe(0)
  expect(stdout).toContain('bun run keys revoke <key_id>')
})
