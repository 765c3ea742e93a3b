import { beforeAll, expect, test } from 'bun:test'
import { builtClient, runNode } from '../support/client-build.ts'
import { reporterEnv } from '../support/report-service.ts'
import { freePort, startTestService, type TestService } from '../support/service.ts'

/** How programs in Node that use the client library end: with everything sent, and as they would without it. */

let service: TestService
let env: Record<string, string>
let head: string
beforeAll(async () => {
  service = await startTestService()
  env = await reporterEnv(service)
  head = `import { Client } from ${JSON.stringify(await builtClient())}
const client = new Client({ flushIntervalMs: 60_000 })
const run = client.startRun({ externalRunId: process.env.NAME })
for (let i = 0; i < 10; i++) run.event('step', { i })
`
})

async function eventsOf(name: string): Promise<number> {
  const { items } = (await service.api('GET', `/api/v1/runs?external_run_id=${name}`)).data
  const { data } = await service.api('GET', `/api/v1/runs/${items[0].run_id}/events`)
  return data.items.length
}

test('a program that has nothing left to do sends what it reported, and exits', async () => {
  const program = runNode(`${head} run.complete()`, { ...env, NAME: 'ends' })
  expect([await program.ended, program.output()]).toEqual([0, ''])
  expect(await eventsOf('ends')).toBe(10)
})

test.each(['SIGTERM', 'SIGINT'] as const)('%s sends what was reported, and then ends the program', async (signal) => {
  const program = runNode(`${head} setInterval(() => {}, 1000); console.log('up')`, { ...env, NAME: signal })
  await program.printed('up')
  program.kill(signal)
  expect(await program.ended).toBe(signal)
  expect(await eventsOf(signal)).toBe(10)
})

test("a program's own handler of a signal decides when it ends", async () => {
  const own = `process.on('SIGTERM', () => { run.event('last'); setTimeout(async () => {
    await client.close(); process.exit(7) }, 50) }); setInterval(() => {}, 1000); console.log('up')`
  const program = runNode(`${head} ${own}`, { ...env, NAME: 'own' })
  await program.printed('up')
  program.kill('SIGTERM')
  expect(await program.ended).toBe(7)
  expect(await eventsOf('own')).toBe(11)
})

test('without the service, the program ends after a limited time and says what was lost', async () => {
  const AGENT_RUN_URL = `http://127.0.0.1:${freePort()}`
  const code = head.replace('flushIntervalMs', 'closeTimeoutMs: 300, flushIntervalMs')
  const program = runNode(code, { ...env, AGENT_RUN_URL })
  expect(await program.ended).toBe(0)
  expect(program.output()).toContain('11 reports dropped: the program ended before the service took them')
})

test('a program that waits for flush or room does not end before', async () => {
  const code = `${head} await client.flush(); console.log(client.stats.acknowledged)
const small = new Client({ bufferBytes: 1000, whenFull: 'wait' }); const other = small.startRun()
for (let i = 0; i < 100; i++) await other.event('step', { text: 'x'.repeat(50) })
console.log('reported'); await client.close(); await small.close(); console.log(small.stats.acknowledged)`
  const program = runNode(code, { ...env, NAME: 'waits' })
  expect([await program.ended, program.output()]).toEqual([0, '11\nreported\n101\n'])
})
