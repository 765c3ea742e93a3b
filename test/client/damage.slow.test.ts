import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { python, runPython } from '../support/python.ts'
import { accept, reportingClient, serveReports } from '../support/report-service.ts'
import { freePort } from '../support/service.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** A spool that was damaged: what can be read is sent, what cannot is kept aside and reported (docs/client.md#spool). */

const NOWHERE = `http://127.0.0.1:${freePort()}`
const AGENT = crypto.randomUUID()
/** A start, ten events, an end. */
const REPORTS = 12

interface Sent {
  readonly closed: boolean
  readonly acknowledged: number
  readonly errors: readonly (readonly [reason: string, reports: number, message: string])[]
}

async function fillWithNode(spool: string): Promise<void> {
  const { client } = reportingClient({ url: NOWHERE, key: 'k', agentId: AGENT, spool })
  const run = client.startRun()
  for (let i = 0; i < 10; i++) void run.event('step', { i })
  run.complete()
  await client.close(1)
}

async function sendWithNode(spool: string, url: string, closeMs = 30_000): Promise<Sent> {
  const { client, errors } = reportingClient({ url, key: 'k', agentId: AGENT, spool })
  const closed = await client.close(closeMs)
  const told = errors.map(({ reason, reports, message }) => [reason, reports, message] as const)
  return { closed, acknowledged: client.stats.acknowledged, errors: told }
}

async function fillWithPython(spool: string): Promise<void> {
  await runPython(
    `client = Client(url=${JSON.stringify(NOWHERE)}, key="k", agent_id="${AGENT}", spool=os.environ["SPOOL"], on_error=lambda _: 0)
run = client.run()
for i in range(10): run.event("step", {"i": i})
run.complete()
client.close(0.01)`,
    { SPOOL: spool },
  )
}

async function sendWithPython(spool: string, url: string, closeMs = 30_000): Promise<Sent> {
  const output = await runPython(
    `errors = []
client = Client(url=${JSON.stringify(url)}, key="k", agent_id="${AGENT}", spool=os.environ["SPOOL"], on_error=errors.append)
closed = client.close(${closeMs / 1000})
told = [[e.reason, e.reports, str(e)] for e in errors]
print(json.dumps({"closed": closed, "acknowledged": client.stats.acknowledged, "errors": told}))`,
    { SPOOL: spool },
  )
  return JSON.parse(output)
}

const CLIENTS = [
  ['TypeScript', fillWithNode, sendWithNode] as const,
  ...(python === null ? [] : [['Python', fillWithPython, sendWithPython] as const]),
]

type Lines = readonly Buffer[]
const END = Buffer.from('\n')
const textOf = (lines: Lines) => Buffer.concat(lines.flatMap((line) => [line, END]))
const replaced = (lines: Lines, at: number, line: Buffer) => textOf(lines.with(at, line))
/** The line with another byte in it. */
function garbled(line: Buffer, at: number, byte: number): Buffer {
  const copy = Buffer.from(line)
  copy[at] = byte
  return copy
}
/** The lines up to the middle of the last one, which is where a page of memory ends: blank lines are ignored. */
function cutAtPage(lines: Lines): Buffer {
  const before = textOf(lines.slice(0, -1))
  const begun = lines.at(-1)!.subarray(0, 60)
  return Buffer.concat([before, Buffer.alloc(4_095 - before.length - begun.length, ' '), END, begun])
}

/** What happens to the file, how many reports it costs, and how many damaged lines that is. */
const DAMAGE: readonly (readonly [string, (lines: Lines) => Buffer, lost: number, aside: number])[] = [
  ['a byte that is not UTF-8', (lines) => replaced(lines, 5, garbled(lines[5]!, 60, 0xff)), 1, 1],
  ['JSON that is none', (lines) => replaced(lines, 5, garbled(lines[5]!, 40, 0x21)), 1, 1],
  ['another kind', (lines) => replaced(lines, 5, garbled(lines[5]!, 0, 0x61)), 1, 1],
  ['a line of zeros', (lines) => replaced(lines, 5, Buffer.alloc(lines[5]!.length)), 1, 1],
  ['a lost line end', (lines) => replaced(lines.toSpliced(6, 1), 5, Buffer.concat([lines[5]!, lines[6]!])), 2, 1],
  ['a line that is cut in two', (lines) => replaced(lines, 5, Buffer.concat([lines[5]!.subarray(0, 50), END])), 1, 1],
  ['a garbled last line', (lines) => textOf(lines.with(-1, Buffer.from('c 01'))).subarray(0, -1), 1, 1],
  ['a last line that a kill cut at a page', (lines) => cutAtPage(lines), 1, 0],
  ['a last line without its end', (lines) => textOf(lines).subarray(0, -1), 0, 0],
  ['an empty line', (lines) => textOf(lines.toSpliced(4, 0, Buffer.alloc(0))), 0, 0],
  ['a position beyond the end', (lines) => textOf([...lines, Buffer.from('a 99999999999')]), 0, 0],
  ['a position within a line', (lines) => textOf([...lines, Buffer.from('a 77 77')]), 0, 0],
  [
    'a position with wrong check digits',
    (lines) => textOf([...lines, Buffer.from(`a ${lines[0]!.length + 1} 98`)]),
    0,
    0,
  ],
  ['a position that is no number', (lines) => textOf([...lines, Buffer.from('a 12x')]), 0, 1],
  ['nothing but noise', () => Buffer.from([1, 2, 250, 0, 255, 10, 99, 10, 7, 10]), REPORTS, 3],
]

describe.each(CLIENTS)('a damaged spool of the %s client', (_name, fill, send) => {
  test.each(DAMAGE)('%s', async (_what, damage, lost, aside) => {
    const path = join(await temporaryDirectory(), 'spool')
    await fill(path)
    const lines: Buffer[] = []
    const whole = readFileSync(path)
    for (let at = 0; at < whole.length; at = whole.indexOf(END, at) + 1)
      lines.push(whole.subarray(at, whole.indexOf(END, at)))
    expect(lines).toHaveLength(REPORTS)
    const damaged = damage(lines)
    writeFileSync(path, damaged)
    const { url, received } = serveReports(accept)
    const sent = await send(path, url)
    expect(sent).toMatchObject({ closed: true, acknowledged: REPORTS - lost })
    const told = aside === 0 ? [] : [['invalid', aside, expect.stringContaining(`kept in ${path}.damaged`)]]
    expect(sent.errors).toEqual(told as never)
    const events = received.flatMap(({ text }) => JSON.parse(text).events ?? [])
    expect(new Set(events.map(({ id }: { id: string }) => id)).size).toBe(events.length)
    // Nothing of it is gone: what was not sent is in the other file.
    if (aside > 0) {
      const kept = readFileSync(`${path}.damaged`)
      expect(kept.filter((byte) => byte === 10)).toHaveLength(aside)
      for (let at = 0; at < kept.length - 1; at = kept.indexOf(END, at) + 1)
        expect(damaged.includes(kept.subarray(at, kept.indexOf(END, at)))).toBe(true)
    }
    expect(existsSync(path)).toBe(false)
  })

  test('what was set aside is not reported again by the next client', async () => {
    const path = join(await temporaryDirectory(), 'spool')
    await fill(path)
    const text = readFileSync(path, 'latin1')
    writeFileSync(path, text.replace('"payload"', '"pay\xffload'), 'latin1')
    const first = await send(path, serveReports(() => new Response('', { status: 503 })).url, 500)
    expect(first).toMatchObject({ closed: false, errors: [['invalid', 1, expect.any(String)]] })
    expect(await send(path, serveReports(accept).url)).toEqual({
      ...{ closed: true, acknowledged: REPORTS - 1, errors: [] },
    })
  })
})
