import { beforeAll, describe, expect, test } from 'bun:test'
import fs from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { $ } from 'bun'
import { Client, type ReportError } from '../../src/client/node.ts'
import { builtClient, runNode } from '../support/client-build.ts'
import { python, runPython } from '../support/python.ts'
import { reporterEnv } from '../support/report-service.ts'
import { freePort, startTestService, type TestService } from '../support/service.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

/** What the surroundings of an agent do to both clients: odd values, full disks, clocks that jump, forks, curious logs. */

let service: TestService
let env: Record<string, string>
beforeAll(async () => {
  service = await startTestService()
  env = await reporterEnv(service)
})

const withPython = describe.skipIf(python === null)
const testPython = test.skipIf(python === null)
const read = async (path: string) => (await service.api('GET', `/api/v1/runs/${path}`)).data
const typesOf = async (runId: string) =>
  (await read(`${runId}/events`)).items.map(({ type }: { type: string }) => type).sort()

async function node(code: string, more: Record<string, string> = {}): Promise<string> {
  const program = runNode(`import { Client } from ${JSON.stringify(await builtClient())}\n${code}`, { ...env, ...more })
  const ended = await program.ended
  if (ended !== 0) throw new Error(`ended with ${ended}:\n${program.output()}`)
  return program.output().trim()
}

const runPy = async (code: string, more: Record<string, string> = {}) =>
  (await runPython(code, { ...env, ...more })).trim()

describe('a value that JSON cannot express is reported, and the run or task starts and ends all the same', () => {
  test('TypeScript', async () => {
    const errors: ReportError[] = []
    const { AGENT_RUN_URL: url, AGENT_RUN_KEY: key, AGENT_RUN_AGENT_ID: agentId } = env
    const client = new Client({ url, key, agentId, flushAtExit: false, onError: (error) => errors.push(error) })
    const circular: Record<string, unknown> = {}
    circular.self = circular
    const run = client.startRun({ input: circular })
    const task = run.startTask('one', { input: { big: 1n } })
    task.complete(circular)
    run.complete(circular)
    const failed = client.startRun()
    failed.fail(Object.create(null))
    await client.close(60_000)
    expect(await read(run.runId)).toMatchObject({ status: 'completed', input: {}, output: {} })
    expect((await read(run.runId)).output.invalid_json ?? '').toMatch(/circular|cyclic/i)
    expect((await read(`${run.runId}/tasks`)).items).toMatchObject([{ status: 'completed' }])
    expect((await read(failed.runId)).status).toBe('failed')
    expect(errors.map(({ reason, reports, runId }) => [reason, reports, runId])).toEqual(
      Array.from({ length: 4 }, () => ['invalid', 1, run.runId]),
    )
  })

  testPython('Python', async () => {
    const output = await runPy(`
errors = []
client = Client(on_error=errors.append)
circular = {}
circular["self"] = circular
run = client.run(input=circular)
with run.task("one", input={"x": object()}) as task: task.output = float("nan")
run.complete(circular)
class Odd(Exception):
    def __str__(self): raise ValueError("odd")
failed = client.run()
failed.fail(Odd())
client.close()
print(json.dumps([run.run_id, failed.run_id, [[e.reason, e.reports, e.run_id] for e in errors]]))`)
    const [runId, failed, errors] = JSON.parse(output)
    expect(await read(runId)).toMatchObject({
      ...{ status: 'completed', output: { invalid_json: 'Circular reference detected' } },
    })
    expect((await read(`${runId}/tasks`)).items).toMatchObject([{ status: 'completed' }])
    expect((await read(failed)).status).toBe('failed')
    expect(errors).toEqual(Array.from({ length: 4 }, () => ['invalid', 1, runId]))
  })
})

describe('no log shows the key', () => {
  const key = 'svc_agent_NeverShown'
  test('TypeScript', async () => {
    const options = { url: `http://127.0.0.1:${freePort()}`, key, agentId: crypto.randomUUID(), flushAtExit: false }
    const errors: ReportError[] = []
    const client = new Client({ ...options, maxRetries: 0, onError: (error) => errors.push(error) })
    const run = client.startRun()
    const failure = await client.runs.get(run.runId).catch((error: unknown) => error)
    await client.close(100)
    const shown = [client, run, run.startTask('one'), failure, ...errors].flatMap((each) => [
      ...[inspect(each, { depth: 20, showHidden: true }), Bun.inspect(each, { depth: 20 }), JSON.stringify(each)],
      String((each as Error).stack),
    ])
    expect(errors.length).toBeGreaterThan(0)
    expect(shown.filter((text) => text?.includes('NeverShown'))).toEqual([])
    const told = () => new Client({ ...options, key: `${key}\nx` })
    expect(told).toThrow('key must consist of printable ASCII characters')
    const inNode = await node(
      `import { inspect } from 'node:util'
const client = new Client({ key: '${key}', url: '${options.url}', maxRetries: 0, closeTimeoutMs: 50 })
const run = client.startRun()
const failure = await client.runs.get(run.runId).catch((error) => error)
console.log(client, run, failure)
console.log(inspect([client, run, failure], { depth: 20, showHidden: true }), JSON.stringify([client, run, failure]))`,
    )
    expect(inNode).toContain('Client')
    expect(inNode).not.toContain('NeverShown')
  })

  testPython('Python', async () => {
    const output = await runPy(
      `
import pprint, traceback
errors = []
client = Client(on_error=errors.append, max_retries=0)
del os.environ["AGENT_RUN_KEY"]
run = client.run()
def show(value, seen, depth=0):
    print(repr(value))
    if id(value) in seen or depth > 6 or not hasattr(value, "__dict__"): return
    seen.add(id(value))
    for each in vars(value).values(): show(each, seen, depth + 1)
show(client, set()); show(run, set())
def show_error(error):
    shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    print("".join(shown.format()), str(error), repr(error))
try: client.request("GET", "/api/v1/runs/" + run.run_id)
except Exception as error: show_error(error)
client.close(0.3)
for error in errors: show_error(error)
try: Client(key="NeverShown" + chr(10) + "x")
except ValueError as error: print(error)
print(len(errors))`,
      { AGENT_RUN_KEY: key, AGENT_RUN_URL: `http://127.0.0.1:${freePort()}` },
    )
    expect(output).toContain('key must consist of printable ASCII characters')
    expect(Number(output.split('\n').at(-1))).toBeGreaterThan(0)
    expect(output.split('\n').filter((line) => line.includes('NeverShown'))).toEqual([])
  })
})

/** A file system of 1 MiB; undefined where this user may not mount one. */
async function smallDisk(): Promise<string | undefined> {
  const directory = await temporaryDirectory()
  const { exitCode } = await $`mount -t tmpfs -o size=1m,mode=0777 tmpfs ${directory}`.quiet().nothrow()
  if (exitCode !== 0) return undefined
  atEnd(() => $`umount -l ${directory}`.quiet().nothrow())
  return directory
}

describe('a full disk under a spool', () => {
  const FACTS = '"x" * 1000'
  const inPython = (events: number) => `
errors = []
client = Client(spool=os.environ["SPOOL"], on_error=errors.append, flush_at_exit=False)
run = client.run()
for i in range(${events}): run.event("step", {"text": ${FACTS}})
run.complete()
closed = client.close(float(os.environ["CLOSE"]))
s = client.stats
print(json.dumps([closed, s.acknowledged, s.dropped, s.queued, sorted({e.reason for e in errors}), str(errors[-1:])]))`
  const inNode = (events: number) => `
const errors = []
const client = new Client({ spool: process.env.SPOOL, onError: (error) => errors.push(error), flushAtExit: false })
const run = client.startRun()
for (let i = 0; i < ${events}; i++) await run.event('step', { text: 'x'.repeat(1000) })
run.complete()
const closed = await client.close(Number(process.env.CLOSE) * 1000)
const { acknowledged, dropped, queued } = client.stats
const reasons = [...new Set(errors.map(({ reason }) => reason))].sort()
console.log(JSON.stringify([closed, acknowledged, dropped, queued, reasons, String(errors.at(-1))]))`
  const clients = [['TypeScript', (n: number, more: object) => node(inNode(n), more as never)] as const]
  if (python !== null) clients.push(['Python', (n: number, more: object) => runPy(inPython(n), more as never)] as never)

  test.each(clients)(
    '%s: reports go to the service through memory, and during an outage the rest is counted',
    async (_, run) => {
      const disk = await smallDisk()
      if (disk === undefined) return
      const SPOOL = join(disk, 'spool')
      fs.writeFileSync(SPOOL, '')
      fs.writeFileSync(`${SPOOL}.lock`, '0 0')
      const filler = fs.openSync(join(disk, 'filler'), 'w')
      const fill = () => {
        for (const size of [65_536, 4_096]) {
          try {
            while (fs.writeSync(filler, Buffer.alloc(size)) === size);
          } catch {}
        }
      }
      // The file system keeps room for what the lock needs.
      fs.ftruncateSync(filler, 0)
      fill()
      fs.ftruncateSync(filler, fs.fstatSync(filler).size - 8_192)
      expect(JSON.parse(await run(100, { SPOOL, CLOSE: '60' }))).toEqual([true, 102, 0, 0, [], expect.any(String)])

      const [closed, acknowledged, dropped, queued, reasons, last] = JSON.parse(
        await run(100, { SPOOL, CLOSE: '0.3', AGENT_RUN_URL: `http://127.0.0.1:${freePort()}` }),
      )
      expect([closed, acknowledged, reasons]).toEqual([false, 0, ['dropped']])
      expect(dropped).toBeGreaterThan(80)
      expect(last).toContain('dropped')
      expect(queued).toBeLessThan(110)
      fs.closeSync(filler)
      fs.rmSync(join(disk, 'filler'))
      // What was in the file is sent by the next client.
      const rest = JSON.parse(await run(1, { SPOOL, CLOSE: '60' }))
      expect(rest).toEqual([true, 3 + 102 - dropped, 0, 0, [], expect.any(String)])
    },
  )
})

describe('a clock that jumps', () => {
  test('Node: reports and their order are the same', async () => {
    const runId = await node(`
const real = Date.now, started = performance.now()
let shift = 0
Date.now = () => real() + shift
const client = new Client({ flushIntervalMs: 5 })
const run = client.startRun()
for (const years of [0, -40, 40, -1, 0]) {
  shift = years * 31_557_600_000
  run.event('step', { years })
  await run.task('step', async () => { shift -= 3_600_000 })
  await client.flush()
}
run.complete()
if (!await client.close(60_000) || client.stats.rejected + client.stats.dropped > 0) throw new Error(JSON.stringify(client.stats))
console.log(run.runId)`)
    const years = (await read(`${runId}/events`)).items.map(
      ({ payload }: { payload: { years: number } }) => payload.years,
    )
    expect(years).toEqual([0, -40, 40, -1, 0])
    expect((await read(`${runId}/tasks`)).items).toHaveLength(5)
  })

  testPython('Python: reports and their order are the same', async () => {
    const runId = await runPy(`
import agent_run_service._run as module, agent_run_service._ids as ids
from datetime import datetime, timedelta
shift = 0
class Clock(datetime):
    @classmethod
    def now(cls, tz=None): return datetime.now(tz) + timedelta(seconds=shift)
module.datetime = Clock
real = time.time_ns
time.time_ns = lambda: real() + shift * 10**9
client = Client(flush_interval=0.005)
run = client.run()
for years in [0, -40, 40, -60, 0]:
    shift = years * 31_557_600
    run.event("step", {"years": years})
    with run.task("step"): shift -= 3600
    client.flush()
run.complete()
assert client.close(60) and client.stats.rejected + client.stats.dropped == 0, client.stats
print(run.run_id)`)
    const years = (await read(`${runId}/events`)).items.map(
      ({ payload }: { payload: { years: number } }) => payload.years,
    )
    expect(years).toEqual([0, -40, 40, -60, 0])
    expect((await read(`${runId}/tasks`)).items).toHaveLength(5)
  })
})

withPython('processes of Python', () => {
  test('a forked process reports for itself, whatever its parent held, and ends at once', async () => {
    const output = await runPy(`
client = Client(flush_interval=60)
run = client.run()
run.event("parent")
client.flush()
# As if another thread were reporting at the moment of the fork.
held, go = threading.Event(), threading.Event()
def hold():
    with client._reporter._changed:
        held.set(); go.wait()
thread = threading.Thread(target=hold); thread.start(); held.wait()
child = os.fork()
if child == 0:
    started = time.monotonic()
    print(client.stats.queued, client.flush(5), time.monotonic() - started < 4)
    run.event("child")
    sys.exit(0)
go.set(); thread.join()
os.waitpid(child, 0)
client.close(60)
print(run.run_id)`)
    const [child, runId] = output.split('\n')
    expect(child).toBe('0 True True')
    expect(await typesOf(runId!)).toEqual(['child', 'parent'])
  })

  test.each(['fork', 'spawn'])('of multiprocessing (%s) send what they reported when they end', async (method) => {
    const path = join(await temporaryDirectory(), 'program.py')
    await Bun.write(
      path,
      `
import multiprocessing, os, sys
from agent_run_service import Client
client = None
def work(number, run_id):
    global client
    if client is None: client = Client(flush_interval=60)
    from agent_run_service import Run
    Run(client._reporting, run_id).event("child")
if __name__ == "__main__":
    context = multiprocessing.get_context("${method}")
    client = Client(flush_interval=60)
    run = client.run()
    run.event("parent")
    client.flush()
    children = [context.Process(target=work, args=(i, run.run_id)) for i in range(3)]
    for child in children: child.start()
    for child in children: child.join()
    client.close(60)
    print(run.run_id)
`,
    )
    const runId = await runPy(
      `import runpy; sys.argv = [${JSON.stringify(path)}]; os.execvp(sys.executable, [sys.executable] + sys.argv)`,
    )
    expect(await typesOf(runId)).toEqual(['child', 'child', 'child', 'parent'])
  })

  test('a fork does not keep the spool of its parent locked', async () => {
    const SPOOL = join(await temporaryDirectory(), 'spool')
    const output = await runPy(
      `
client = Client(spool=os.environ["SPOOL"], url="http://127.0.0.1:${freePort()}", flush_at_exit=False)
run = client.run()
ready, ends = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    os.close(ends[1]); os.write(ready[1], b"x"); os.read(ends[0], 1); os._exit(0)
os.read(ready[0], 1)
client.close(0.01)
again = Client(spool=os.environ["SPOOL"])
print(again.stats.queued, again.close(60))
os.close(ends[1]); os.waitpid(child, 0)`,
      { SPOOL },
    )
    expect(output).toBe('1 True')
  })
})
