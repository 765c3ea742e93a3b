import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { validate } from 'dockerfile-utils'
import packageJson from '../../package.json'

/** Without a container runtime: a linter checks the Dockerfile, and it is compared with the scripts. */

const ROOT = join(import.meta.dir, '..', '..')
const dockerfile = await Bun.file(join(ROOT, 'Dockerfile')).text()
/** The instructions of the last stage, with continued lines joined. */
const stage = (dockerfile.split(/^FROM /m).at(-1) ?? '').replace(/\\\n\s*/g, ' ')
const instruction = (name: string) => new RegExp(`^${name} (.*)$`, 'm').exec(stage)?.[1]

test('the Dockerfile is accepted by the linter', () => {
  expect(validate(dockerfile)).toEqual([])
})

test('the container starts the program that `bun run start` starts, with the same environment', () => {
  const [, environment = '', script = ''] = /exec env (.*) bun (\S+)$/.exec(packageJson.scripts.start) ?? []
  expect(JSON.parse(instruction('CMD') ?? '')).toEqual(['node_modules/.bin/bun', script])
  expect(environment).not.toBe('')
  for (const variable of environment.split(' ')) expect(instruction('ENV')?.split(/\s+/)).toContain(variable)
})

test('the command of the package sets what `bun run start` sets', async () => {
  const [, environment = ''] = /exec env (.*) bun/.exec(packageJson.scripts.start) ?? []
  const command = await Bun.file(join(ROOT, packageJson.bin['agent-run-service'])).text()
  for (const [name, value] of environment.split(' ').map((each) => each.split(/=(.*)/)))
    expect(command).toContain(`${name}: '${value}'`)
})

test('the container runs as an unprivileged user that owns the data, which is a volume', () => {
  expect(instruction('USER')).toBe('node')
  expect(instruction('VOLUME')).toBe('/data')
  expect(instruction('RUN')).toContain('chown node:node /data')
  expect(instruction('ENV')).toContain('DATA_DIR=/data')
  expect(instruction('ENV')).toContain('HOST=0.0.0.0')
  expect(instruction('STOPSIGNAL')).toBe('SIGTERM')
})

test.each([
  [200, 0],
  [503, 1],
])('the health check of a service that answers %d exits with %d', async (status, exitCode) => {
  const paths: string[] = []
  await using server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ url }) {
      paths.push(new URL(url).pathname)
      return new Response('', { status })
    },
  })
  const [, command = '[]'] = / CMD (.*)/.exec(instruction('HEALTHCHECK') ?? '') ?? []
  const [program, ...rest] = JSON.parse(command) as string[]
  expect(program).toBe('node')
  const env = { PATH: process.env.PATH, PORT: String(server.port) }
  // Bun stands in for Node where that is missing.
  const child = Bun.spawn([Bun.which('node') ?? process.execPath, ...rest], { env })
  expect(await child.exited).toBe(exitCode)
  expect(paths).toEqual(['/readyz'])
})

test('the image contains what the service needs, and neither secrets nor data', async () => {
  const ignored = (await Bun.file(join(ROOT, '.dockerignore')).text()).trim().split('\n')
  for (const needed of ['package.json', 'bun.lock', 'bunfig.toml', 'src', 'sql', 'tsconfig.json']) {
    expect(existsSync(join(ROOT, needed))).toBe(true)
    expect(ignored).not.toContain(needed)
  }
  expect(ignored).toEqual(expect.arrayContaining(['.env', '.git', 'data', 'node_modules']))
})
