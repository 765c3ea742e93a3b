import { expect, test } from 'bun:test'
import { readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { newAgent } from '../support/api.ts'
import { continuedBy, PAGES, programOf, type Snippet, snippetsOf } from '../support/guides.ts'
import { type ModelServerRequest, startModelServer, type Turn } from '../support/model-server.ts'
import { runProgram } from '../support/processes.ts'
import { PACKAGE, python } from '../support/python.ts'
import { freePort, startTestService, type TestService } from '../support/service.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

/**
 * Does what the README and the guides say, beside a running service: pastes every `sh` block of a page, top to bottom,
 * into a shell of its own, which has nothing but what the page sets, or another one that it says it continues. With
 * what that shell exports, the page's programs in Python and those for Node run. Blocks that start the service, never
 * end or take minutes are fenced as `console` and not pasted.
 */

const ROOT = join(import.meta.dir, '..', '..')
const CONSOLE_MAX = 10
const hasTools = ['bash', 'curl', 'jq', 'node'].every((each) => Bun.which(each) !== null)
const DEMO = 'demo --duration 60'

interface Pasted {
  readonly output: string
  /** Failed commands, and the snippet's variables that are empty. */
  readonly failures: string
}

interface Shell {
  readonly pasted: readonly Pasted[]
  /** What it has exported in the end. */
  readonly exported: Record<string, string>
}

/** The pages with something to run, the README first: the guides query what its demo reports. */
const pages = PAGES.filter((page) => programOf(page, 'sh', 'python', 'sql') !== '')

test('what is not pasted is an exception', () => {
  const all = PAGES.flatMap((page) => snippetsOf(page))
  expect(all.filter(({ language }) => language === 'sh').length).toBeGreaterThan(25)
  expect(all.filter(({ language }) => language === 'console').length).toBeLessThanOrEqual(CONSOLE_MAX)
})

test.skipIf(!hasTools)(
  'every page can be followed, top to bottom, and prints the shown output',
  async () => {
    const port = String(freePort())
    const model = startModelServer(waiter)
    const service = await startTestService({ OPENAI_BASE_URL: model.url, EGRESS_ALLOW: `127.0.0.1:${port}` })
    const { agentId, agentKey } = await newAgent(service.api)
    const adapted = (text: string) =>
      text
        .replaceAll('http://127.0.0.1:3000', service.url)
        .replaceAll('svc_ws_…', service.workspaceKey)
        .replaceAll('svc_agent_…', agentKey)
        .replaceAll('AGENT_RUN_AGENT_ID=…', `AGENT_RUN_AGENT_ID=${agentId}`)
        .replaceAll('4010', port)
        // A shorter run of the simulator, with the same choices each time.
        .replace(DEMO, 'demo --rate 4 --duration 4 --seed 7')
    for (const page of pages) {
      const own = snippetsOf(page).filter(({ language }) => language === 'sh')
      // What was reported stays, so the demo runs once.
      const before = continuedBy(page).flatMap((each) => snippetsOf(each).filter(isSetting))
      const { pasted, exported } = await paste([...before, ...own].map(({ text }) => adapted(text)))
      for (const [i, snippet] of own.entries()) expectShown(snippet, pasted[before.length + i]!)
      await runPrograms(page, exported)
      for (const { at, text } of snippetsOf(page).filter(({ language }) => language === 'sql'))
        expect({ at, error: (await service.api('POST', '/api/v1/query', { query: text })).error }).toMatchObject({
          at,
          error: null,
        })
    }
    await expectReported(service)
  },
  300_000,
)

const isSetting = ({ language, text }: Snippet) => language === 'sh' && !text.includes(DEMO)

/** Acts as the model: calls the tool, asks which tea, and then answers. */
function waiter({ body }: ModelServerRequest): Turn {
  const last = body.messages.at(-1)
  if (last?.role === 'tool') return { text: `Done: ${last.content}` }
  if (/refund/.test(last?.content ?? ''))
    return { toolCalls: [{ name: 'refund', arguments: { order: 'A-17', amount: 20 } }] }
  if (/pot of tea/.test(last?.content ?? ''))
    return { toolCalls: [{ name: 'request_input', arguments: { question: 'Which?', options: ['green', 'black'] } }] }
  return { text: ['Another pot', ' of green tea', ' for Ada.'] }
}

function expectShown({ at, text, next }: Snippet, { output, failures }: Pasted): void {
  const report = `${at}\n${text}\n${output}\n${failures}`
  expect(failures, report).toBe('')
  expect(output, report).not.toMatch(/^null$|"error":\{|"rows":\[\]|^\[\]$/m)
  if (next?.language === 'text') expect(output.trim(), report).not.toBe('')
  if (next?.language === 'json') expect(shapesOf(output), report).toEqual(shapesOf(next.text))
}

/** Runs all snippets in one shell; records each failed command and each empty variable. */
async function paste(snippets: readonly string[]): Promise<Shell> {
  const directory = await temporaryDirectory()
  const file = (kind: string, i: number | string) => join(directory, `${kind}-${i}`)
  const script = [
    'set -E -u -o pipefail',
    // The scripts of the clone, without the second that npx takes each time.
    `npx() { shift; (cd '${ROOT}' && "$@"); }`,
    `trap 'kill "\${SHOP:-}" "\${RECEIVER:-}" 2>/dev/null || true' EXIT`,
    `cd '${directory}'`,
  ]
  for (const [i, text] of snippets.entries()) {
    const variables = [...text.matchAll(/^(?:export )?([A-Z_]+)=/gm)].map((match) => match[1])
    script.push(
      `trap 'echo "exit code $?: $BASH_COMMAND" >> ${file('failures', i)}' ERR`,
      `{\n${text}\n} > ${file('output', i)} 2> ${file('errors', i)}`,
      ...variables.map(
        (name) => `case "$${name}" in ''|null) echo "${name} is '$${name}'" >> ${file('failures', i)};; esac`,
      ),
      `: > ${file('ended', i)}`,
    )
  }
  script.push(`env -0 > ${file('exported', 'all')}`)
  const shell = Bun.spawn(['bash', '-c', script.join('\n')], {
    env: { PATH: `${join(ROOT, 'node_modules', '.bin')}:${process.env.PATH}`, HOME: process.env.HOME ?? directory },
    ...{ stdin: 'ignore', stdout: 'ignore', stderr: 'ignore' },
  })
  atEnd(async () => shell.kill())
  await shell.exited
  const read = (kind: string, i: number | string) => readFile(file(kind, i), 'utf8').catch(() => '')
  const pasted = snippets.map(async (_, i) => {
    const hasEnded = await Bun.file(file('ended', i)).exists()
    const failures = (await read('failures', i)) + (hasEnded ? '' : 'the shell ended here, or before\n')
    return { output: await read('output', i), failures: failures && failures + (await read('errors', i)) }
  })
  const variables = (await read('exported', 'all')).split('\0').map((each) => /^([^=]+)=(.*)$/s.exec(each) ?? [])
  return {
    pasted: await Promise.all(pasted),
    exported: Object.fromEntries(variables.map(([, name = '', value = '']) => [name, value])),
  }
}

/** Runs the page's programs in Python, and those in JavaScript that import something: the others are for browsers. */
async function runPrograms(page: string, env: Record<string, string>): Promise<void> {
  const directory = await temporaryDirectory()
  await symlink(join(ROOT, 'node_modules'), join(directory, 'node_modules'))
  const javascript = programOf(page, 'js')
  const programs = [
    ...(/^import /m.test(javascript) ? [{ name: 'page.mjs', code: javascript, command: process.execPath }] : []),
    ...(python === null ? [] : [{ name: 'page.py', code: programOf(page, 'python'), command: python }]),
  ]
  for (const { name, code, command } of programs.filter((each) => each.code !== '')) {
    await Bun.write(join(directory, name), code)
    const options = { cwd: directory, env: { ...env, PYTHONPATH: PACKAGE, PYTHONDONTWRITEBYTECODE: '1' } }
    const { code: exitCode, stdout, stderr } = await runProgram([command, name], options)
    expect({ page, exitCode }, stdout + stderr).toEqual({ page, exitCode: 0 })
  }
}

/** The runs that the guides' programs report have tokens, and so a cost. */
async function expectReported(service: TestService): Promise<void> {
  const query = `SELECT agent_name, count() AS runs, min(cost_usd) > 0 AS costs FROM runs
    WHERE agent_name = 'planner' OR toString(input) LIKE '%Why?%' GROUP BY agent_name ORDER BY agent_name`
  const { rows } = (await service.api('POST', '/api/v1/query', { query })).data
  const planner = { agent_name: 'planner', runs: 1, costs: 1 }
  expect(rows).toContainEqual(planner)
  if (python !== null) expect(rows).toContainEqual({ ...planner, agent_name: expect.any(String), runs: 2 })
}

/** The names and types in each line, without the values. */
function shapesOf(lines: string): unknown[] {
  return lines
    .trim()
    .split('\n')
    .map((line) => shapeOf(parsed(line)))
}

function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(shapeOf)
  if (value === null || typeof value !== 'object') return value === null ? null : typeof value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, shapeOf(each)]))
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch (cause) {
    throw new Error(`not JSON: ${line}`, { cause })
  }
}
