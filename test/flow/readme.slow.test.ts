import { expect, test } from 'bun:test'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ModelServerRequest, startModelServer, type Turn } from '../support/model-server.ts'
import { freePort, startTestService } from '../support/service.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

/**
 * Pastes the snippets of the README and the guides: every `sh` block, top to bottom, in one shell, beside
 * a running service. Blocks that start the service, never end or take minutes are fenced as `console` and not pasted.
 */

const ROOT = join(import.meta.dir, '..', '..')
/** In reading order: the guides continue the commands of the README. */
const DOCUMENTS = [
  ...['README.md', 'docs/hosted-agents.md', 'docs/feeds.md', 'docs/sql.md'],
  ...['docs/webhooks.md', 'docs/alerts.md'],
]
const README_LINES_MAX = 180
const NEEDED = ['bash', 'curl', 'jq', 'node']
const hasTools = NEEDED.every((each) => Bun.which(each) !== null)
const CONSOLE_MAX = 5

interface Snippet {
  readonly text: string
  /** The output in the document; undefined if it shows none. */
  readonly shown: string | undefined
  readonly isJson: boolean
}

interface Pasted {
  readonly output: string
  /** Failed commands, and the snippet's variables that are empty. */
  readonly failures: string
}

test.skipIf(!hasTools)(
  'every snippet of the README and the guides can be pasted, top to bottom, and prints the shown output',
  async () => {
    const texts = await Promise.all(DOCUMENTS.map((name) => readFile(join(ROOT, name), 'utf8')))
    expect(texts[0]?.split('\n').length).toBeLessThanOrEqual(README_LINES_MAX)
    const text = texts.join('\n')
    const snippets = snippetsOf(text)
    expect(snippets.length).toBeGreaterThan(15)
    expect([...text.matchAll(/^```console$/gm)].length).toBeLessThanOrEqual(CONSOLE_MAX)

    const port = String(freePort())
    const model = startModelServer(waiter)
    const service = await startTestService({ OPENAI_BASE_URL: model.url, EGRESS_ALLOW: `127.0.0.1:${port}` })
    const adapted = snippets.map(({ text }) =>
      text
        .replace('http://127.0.0.1:3000', service.url)
        .replace('svc_ws_…', service.workspaceKey)
        .replaceAll('4010', port)
        // A shorter run of the simulator, with the same choices each time.
        .replace('demo --duration 60', 'demo --rate 4 --duration 4 --seed 7'),
    )
    const pasted = await paste(adapted)
    for (const [i, { text, shown, isJson }] of snippets.entries()) {
      const { output, failures } = pasted[i] ?? { output: '', failures: 'not reached' }
      const report = `${text}\n${output}\n${failures}`
      expect(failures, report).toBe('')
      expect(output, report).not.toMatch(/^null$|"error":\{|"rows":\[\]|^\[\]$/m)
      if (shown !== undefined) expect(output.trim(), report).not.toBe('')
      if (shown !== undefined && isJson) expect(shapesOf(output), report).toEqual(shapesOf(shown))
    }
  },
  120_000,
)

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

/** A block that directly follows another one is its output. */
function snippetsOf(documents: string): Snippet[] {
  const blocks = [...documents.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map((match) => ({
    language: match[1] ?? '',
    text: match[2] ?? '',
    from: match.index,
    to: match.index + match[0].length,
  }))
  return blocks.flatMap(({ language, text, to }, i) => {
    if (language !== 'sh') return []
    const next = blocks[i + 1]
    const shown = next !== undefined && next.from === to + 1 && ['', 'json'].includes(next.language) ? next : undefined
    return [{ text, shown: shown?.text, isJson: shown?.language === 'json' }]
  })
}

/** Runs all snippets in one shell; records each failed command and each empty variable. */
async function paste(snippets: readonly string[]): Promise<Pasted[]> {
  const directory = await temporaryDirectory()
  const file = (kind: string, i: number) => join(directory, `${kind}-${i}`)
  const script = [
    'set -E -o pipefail',
    // The scripts of the clone, without the second that npx takes each time.
    `npx() { shift; (cd '${ROOT}' && "$@"); }`,
    `trap 'kill "$SHOP" "$RECEIVER" 2>/dev/null || true' EXIT`,
    `cd '${directory}'`,
  ]
  for (const [i, text] of snippets.entries()) {
    const variables = [...text.matchAll(/^(?:export )?([A-Z_]+)=/gm)].map((match) => match[1])
    script.push(
      `trap 'echo "exit code $?: $BASH_COMMAND" >> ${file('failures', i)}' ERR`,
      `: > ${file('failures', i)}`,
      `{\n${text}\n} > ${file('output', i)} 2> ${file('errors', i)}`,
      ...variables.map(
        (name) => `case "$${name}" in ''|null) echo "${name} is '$${name}'" >> ${file('failures', i)};; esac`,
      ),
    )
  }
  const shell = Bun.spawn(['bash', '-c', script.join('\n')], {
    env: {
      PATH: `${join(ROOT, 'node_modules', '.bin')}:${process.env.PATH}`,
      HOME: process.env.HOME ?? directory,
    },
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'ignore',
  })
  atEnd(async () => shell.kill())
  await shell.exited
  const read = (kind: string, i: number) => readFile(file(kind, i), 'utf8').catch(() => '')
  return Promise.all(
    snippets.map(async (_, i) => {
      const failures = await read('failures', i)
      return {
        output: await read('output', i),
        failures: failures === '' ? '' : `${failures}${await read('errors', i)}`,
      }
    }),
  )
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
