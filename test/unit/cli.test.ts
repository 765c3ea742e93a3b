import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { readArgs as readDemo } from '../../src/cli/demo/args.ts'
import { readArgs as readSql } from '../../src/cli/sql/args.ts'
import { readArgs as readTail } from '../../src/cli/tail/args.ts'
import { runProgram } from '../support/processes.ts'

/** What `bun run demo`, `tail` and `sql` share. */

const ENV = { AGENT_RUN_KEY: ' svc_ws_x ', AGENT_RUN_URL: ' https://runs.example/below/ ' }

describe.each([
  ['demo', readDemo, '--ratt', /--rate <n>/],
  ['tail', readTail, '--agnet', /--agent <id>/],
  ['sql', readSql, '--outptu', /--output <path>/],
] as const)('%s', (_, readArgs, typo, meant) => {
  test('reads URL and key from the environment; options take precedence', () => {
    expect(readArgs([], ENV)).toMatchObject({ url: 'https://runs.example/below', key: 'svc_ws_x' })
    expect(readArgs(['--url', 'http://a:1', '--key=svc_ws_y'], ENV)).toMatchObject({
      url: 'http://a:1',
      key: 'svc_ws_y',
    })
    expect(readArgs([], { AGENT_RUN_KEY: 'svc_ws_x', AGENT_RUN_URL: '' })).toMatchObject({
      url: 'http://127.0.0.1:3000',
    })
  })

  test.each([
    [[], {}, /^no key: set AGENT_RUN_KEY, or pass --key svc_/],
    [[], { ...ENV, AGENT_RUN_URL: 'localhost:3000' }, /^AGENT_RUN_URL must begin with http:\/\/ or https:\/\//],
    [['--url', 'localhost:3000'], ENV, /^--url must begin with http:\/\/ or https:\/\/; got "localhost:3000"/],
    [[typo, '1'], ENV, new RegExp(`^unknown option ${typo}\\. Did you mean\\n +${meant.source}`)],
    [['--verbose'], ENV, /^unknown option --verbose\. Try --help\.$/],
  ])('rejects %j and says what to do', (args, env, message) => {
    const error = expect.objectContaining({ name: 'CliError', exitCode: 2, message: expect.stringMatching(message) })
    expect(() => readArgs(args, env)).toThrow(error)
  })

  test('has a help, which names every option', () => {
    expect(() => readArgs(['-h'], {})).toThrow(
      expect.objectContaining({ name: 'HelpRequest', message: expect.stringMatching(meant) }),
    )
  })
})

test('demo and sql need a workspace key; tail accepts an agent key', () => {
  const env = { AGENT_RUN_KEY: 'svc_agent_x' }
  expect(() => readDemo([], env)).toThrow('this is an agent key; the demo needs a workspace key (svc_ws_…)')
  expect(() => readSql([], env)).toThrow('this is an agent key; SQL needs a workspace key (svc_ws_…)')
  expect(readTail([], env)).toMatchObject({ key: 'svc_agent_x' })
})

test.each([
  ['src/main.ts', ['--prot', '3001'], 'unknown option --prot. Try --help.'],
  ['src/cli/backup/main.ts', ['backup', 'x', '--no-chekc'], 'unknown option --no-chekc. Did you mean'],
  ['src/cli/backup/main.ts', ['restore', 'x', '--no-check'], 'unknown option --no-check. Try --help.'],
  ['src/cli/setup/main.ts', ['--servcie'], 'setup: Unknown option'],
  ['test/main.ts', ['--onyl'], 'unknown option --onyl. Did you mean --only?'],
  ['test/bench/main.ts', ['--onyl', 'ingest'], 'unknown option --onyl. Did you mean'],
  ['test/bench/main.ts', ['--only', 'ingset'], 'unknown part ingset.'],
  ['test/bench/main.ts', ['--only', 'peers', '--peer', 'rediss'], 'unknown peer rediss. Did you mean redis?'],
  ['test/long/main.ts', ['--shrot'], 'unknown option --shrot. Did you mean'],
  ['test/long/main.ts', ['kils'], 'unknown campaign kils. Did you mean kills?'],
])(
  '%s %j says what is wrong, without a stack, and exits with 2',
  async (path, args, message) => {
    const program = join(import.meta.dir, '..', '..', path)
    // Nothing beside Bun is on the PATH.
    const { code, stdout, stderr } = await runProgram([process.execPath, program, ...args], { env: { PATH: '' } })
    expect({ code, stdout, stderr }).toEqual({ code: 2, stdout: '', stderr: expect.stringContaining(message) })
    expect(stderr).not.toMatch(/^ +at /m)
    expect(stderr.trim().split('\n').length).toBeLessThanOrEqual(2)
  },
  60_000,
)
