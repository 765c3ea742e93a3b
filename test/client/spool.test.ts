import { beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Report } from '../../src/client/lane.ts'
import { openSpool } from '../../src/client/node-spool.ts'
import { builtClient, runNode } from '../support/client-build.ts'
import { seededRandom } from '../support/random.ts'
import { reporterEnv, reportingClient } from '../support/report-service.ts'
import { freePort, startTestService, type TestService } from '../support/service.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** The file in which the client library keeps reports until they are acknowledged (docs/client.md#spool). */

let service: TestService
let env: Awaited<ReturnType<typeof reporterEnv>>
beforeAll(async () => {
  service = await startTestService()
  env = await reporterEnv(service)
})

const newPath = async () => join(await temporaryDirectory(), 'spool')

const newClient = (spool: string, options: object = {}) =>
  reportingClient({
    url: env.AGENT_RUN_URL,
    key: env.AGENT_RUN_KEY,
    agentId: env.AGENT_RUN_AGENT_ID,
    spool,
    ...options,
  })

async function payloadsOf(runId: string): Promise<number[]> {
  const numbers: number[] = []
  for (let after = '0'; after !== ''; ) {
    const { data } = await service.api('GET', `/api/v1/runs/${runId}/events?limit=200&after_seq=${after}`)
    numbers.push(...data.items.map(({ payload }: { payload: { i: number } }) => payload.i))
    after = data.next_cursor === null ? '' : String(data.next_cursor)
  }
  return numbers
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i)
const nowhere = () => ({ url: `http://127.0.0.1:${freePort()}` })

describe('the spool of a client', () => {
  test('keeps the reports of a killed program; the next client sends them, each once', async () => {
    const path = await newPath()
    const program = runNode(
      `import { Client } from ${JSON.stringify(await builtClient())}
const client = new Client({ spool: ${JSON.stringify(path)}, flushIntervalMs: 20 })
const run = client.startRun()
console.log(run.runId)
for (let i = 0; ; i++) {
  await run.event('step', { i })
  if (i % 500 === 0) { console.log('at ' + i); await new Promise((resolve) => setTimeout(resolve, 1)) }
}`,
      env,
    )
    await program.printed('at 5000')
    program.kill('SIGKILL')
    expect(await program.ended).toBe('SIGKILL')
    const runId = program.output().split('\n')[0]!
    const { client, errors } = newClient(path)
    expect(await client.close(60_000)).toBe(true)
    expect(errors).toEqual([])
    const numbers = await payloadsOf(runId)
    expect(numbers.length).toBeGreaterThan(5_000)
    expect(numbers).toEqual(upTo(numbers.length))
    expect(existsSync(path)).toBe(false)
  })

  test('holds what memory does not during an outage, and sends it in order afterwards', async () => {
    const path = await newPath()
    const { client, errors } = newClient(path, { ...nowhere(), bufferBytes: 20_000 })
    const run = client.startRun()
    for (let i = 0; i < 3_000; i++) await run.event('step', { i, text: 'x'.repeat(100) })
    run.complete()
    expect(client.stats.queuedBytes).toBeLessThanOrEqual(20_000)
    expect(client.stats.queued).toBe(3_002)
    expect(await client.close(50)).toBe(false)
    expect(errors).toEqual([])
    expect(client.stats).toMatchObject({ dropped: 0 })

    const next = newClient(path, { bufferBytes: 20_000 })
    expect(next.client.stats.queued).toBe(3_002)
    const other = next.client.startRun()
    other.event('step', { i: 0 })
    expect(await next.client.close(60_000)).toBe(true)
    expect(await payloadsOf(run.runId)).toEqual(upTo(3_000))
    expect(await payloadsOf(other.runId)).toEqual([0])
    expect((await service.api('GET', `/api/v1/runs/${run.runId}`)).data.status).toBe('completed')
  })

  test('is bounded: what exceeds it is dropped and counted, "wait" waits', async () => {
    const dropping = newClient(await newPath(), { ...nowhere(), spoolBytes: 5_000 })
    const run = dropping.client.startRun()
    for (let i = 0; i < 100; i++) await run.event('step', { text: 'x'.repeat(100) })
    const { dropped, queued } = dropping.client.stats
    expect(dropped).toBeGreaterThan(50)
    expect(dropped + queued).toBe(101)
    await dropping.client.close(1)
    const waiting = newClient(await newPath(), { spoolBytes: 5_000, whenFull: 'wait', waitTimeoutMs: 600_000 })
    const other = waiting.client.startRun()
    for (let i = 0; i < 300; i++) await other.event('step', { i, text: 'x'.repeat(100) })
    await waiting.client.close(60_000)
    expect(waiting.client.stats).toMatchObject({ dropped: 0, acknowledged: 301 })
  })

  test('is used by one client at a time, and a dead process does not lock it', async () => {
    const path = await newPath()
    const { client } = newClient(path, nowhere())
    expect(() => newClient(path)).toThrow(`the spool ${path} is in use by process ${process.pid}`)
    const other = `import { Client } from ${JSON.stringify(await builtClient())}
try { new Client({ key: 'k', spool: ${JSON.stringify(path)} }); console.log('opened'); process.kill(process.pid, 'SIGKILL') }
catch (error) { console.log(error.message) }`
    const refused = runNode(other, {})
    await refused.ended
    expect(refused.output().trim()).toBe(`the spool ${path} is in use by process ${process.pid}`)
    await client.close(1)
    const dies = runNode(other, {})
    expect(await dies.ended).toBe('SIGKILL')
    expect(dies.output().trim()).toBe('opened')
    await newClient(path, nowhere()).client.close(1)
  })
})

describe('the file of a spool', () => {
  const report = (i: number): Report => ({
    ...{ kind: 'event', runId: '018f0000-0000-7000-8000-000000000000' },
    text: `{"i":${i},"text":"${'ä'.repeat(i % 50)}"}`,
  })

  test('ends after its last complete line when the last write was cut', async () => {
    const path = await newPath()
    const spool = openSpool(path)
    for (let i = 0; i < 3; i++) spool.append(report(i))
    spool.close()
    const whole = readFileSync(path)
    for (let cut = 1; cut < 40; cut++) {
      writeFileSync(path, whole.subarray(0, whole.length - cut))
      const next = openSpool(path)
      // Without its end, a line that is complete otherwise is a report.
      if (cut > 1) next.append(report(2))
      expect(next.unread).toBe(3)
      expect(next.read(1e6)).toEqual([report(0), report(1), report(2)])
      expect(next.takeDamage()?.reports ?? 0).toBe(cut > 1 ? 1 : 0)
      next.close()
    }
    expect(readFileSync(`${path}.damaged`, 'utf8').split('\n')).toHaveLength(39)
  })

  test('ends before the report that a killed process had begun to write, which is no damage', async () => {
    const path = await newPath()
    const spool = openSpool(path)
    const text = `{"text":"${'ä'.repeat(5_000)}"}`
    for (let i = 0; i < 3; i++) spool.append({ ...report(i), text })
    spool.close()
    const whole = readFileSync(path)
    // Such a write ends at a page.
    const [page, lineEnd] = [4_096, whole.length / 3]
    const blank = `${' '.repeat(page - 2 - (lineEnd % page))}\n`
    const atFirstLetter = Buffer.concat([whole.subarray(0, lineEnd), Buffer.from(`${blank}e`)])
    for (const [begun, reports] of [
      [whole.subarray(0, page), 0],
      [whole.subarray(0, 4 * page), 1],
      [atFirstLetter, 1],
    ] as const) {
      const found = (file: Buffer) => {
        writeFileSync(path, file)
        const next = openSpool(path)
        const { unread } = next
        const damage = next.takeDamage()?.reports ?? 0
        next.close()
        return { size: file.length % page, unread, damage }
      }
      expect(found(begun)).toEqual({ size: 0, unread: reports, damage: 0 })
      // Other bytes, and another size, are damage.
      expect(found(Buffer.concat([begun.subarray(0, -1), Buffer.alloc(1)])).damage).toBe(1)
      expect(found(Buffer.concat([begun, Buffer.from(' ')])).damage).toBe(1)
    }
    expect(readFileSync(`${path}.damaged`).length).toBeGreaterThan(6 * 1_000)
  })

  test('holds exactly the reports that are not acknowledged, whatever happens in which order', async () => {
    const random = seededRandom('spool')
    const path = await newPath()
    let spool = openSpool(path)
    let [appended, read, acknowledged] = [0, 0, 0]
    for (let step = 0; step < 3_000; step++) {
      const choice = random.int(0, 99)
      if (choice < 50) {
        spool.append(report(appended++))
        if (read === appended - 1 && random.bool()) {
          spool.skip()
          read++
        }
      } else if (choice < 75) {
        const reports = spool.read(random.int(1, 500))
        expect(reports).toEqual(upTo(reports.length).map((i) => report(read + i)))
        read += reports.length
      } else if (choice < 98 && acknowledged < read) {
        const count = random.int(1, read - acknowledged)
        spool.acknowledge(count)
        acknowledged += count
      } else if (choice === 99) {
        spool.close()
        spool = openSpool(path)
        read = acknowledged
      }
      expect(spool.unread).toBe(appended - read)
    }
    spool.close()
  })

  test('does not grow with what is acknowledged', async () => {
    const path = await newPath()
    const spool = openSpool(path)
    const large = { ...report(0), text: `{"text":"${'x'.repeat(500_000)}"}` }
    for (let i = 0; i < 200; i++) {
      spool.append(large)
      spool.skip()
      if (i > 0) spool.acknowledge(1)
    }
    expect(statSync(path).size).toBeLessThan(40 * 2 ** 20)
    spool.append(report(7))
    spool.close()
    const next = openSpool(path)
    expect(next.read(1e9)).toEqual([large, report(7)])
    next.acknowledge(2)
    expect(statSync(path).size).toBe(0)
    next.close()
    expect(existsSync(path)).toBe(false)
  })
})
