import { beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { python, startPython } from '../support/python.ts'
import { type ReceivedCall, reporterEnv, reportingClient, serveReports } from '../support/report-service.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** What both clients do when the service is away for longer than their buffer lasts (docs/client.md#bounds). */

let service: TestService
let env: Awaited<ReturnType<typeof reporterEnv>>
beforeAll(async () => {
  service = await startTestService()
  env = await reporterEnv(service)
})

/** The way to the running service, which is interrupted until `restore` is called. */
function interrupted() {
  let isDown = true
  const forward = ({ method, path, query, headers, text }: ReceivedCall) =>
    fetch(`${service.url}${path}?${query}`, {
      method,
      headers: { authorization: headers.get('authorization')!, 'content-type': 'application/json' },
      body: text,
    })
  const { url } = serveReports((call) => (isDown ? new Response('', { status: 503 }) : forward(call)))
  const restore = () => {
    isDown = false
  }
  return { url, restore }
}

interface Told {
  readonly acknowledged: number
  readonly dropped: number
  readonly rejected: number
  /** The reports of each call of `onError`. */
  readonly told: readonly (readonly [reason: string, reports: number])[]
  readonly most: number
}

const BUFFER = 100_000
const EVENTS = 1_000
const TEXT = 'x'.repeat(500)

type Options = { readonly whenFull?: 'wait'; readonly waitSeconds?: number }

/** Reports a run with a task and many events, restores the service and closes the client. The run is named `name`. */
async function longRunInTypeScript(name: string, { whenFull, waitSeconds = 5 }: Options): Promise<Told> {
  const { url, restore } = interrupted()
  const wait = whenFull === undefined ? {} : { whenFull, waitTimeoutMs: waitSeconds * 1_000 }
  const { client, errors } = newClient(url, wait)
  const run = client.startRun({ externalRunId: name })
  const task = run.startTask('work')
  // Of these the client makes a call, which stays as it is.
  await run.event('first')
  expect(await client.flush(50)).toBe(false)
  let most = 0
  for (let i = 0; i < EVENTS; i++) {
    await task.event('step', { i, text: TEXT })
    most = Math.max(most, client.stats.queuedBytes)
  }
  task.complete()
  run.complete()
  await eventually(() => errors.some(({ reason }) => reason === 'dropped'))
  expect(client.stats.queued + client.stats.dropped).toBe(EVENTS + 5)
  restore()
  await client.close(60_000)
  return { ...client.stats, most, told: toldOf(errors) }
}

function newClient(url: string, options: object) {
  const { AGENT_RUN_KEY: key, AGENT_RUN_AGENT_ID: agentId } = env
  return reportingClient({ url, key, agentId, bufferBytes: BUFFER, flushIntervalMs: 5, ...options })
}

const toldOf = (errors: readonly { readonly reason: string; readonly reports: number }[]): Told['told'] =>
  errors.map(({ reason, reports }) => [reason, reports])

async function longRunInPython(name: string, { whenFull, waitSeconds = 5 }: Options): Promise<Told> {
  return inPython(`
client = new_client(flush_interval=60${whenFull === undefined ? '' : `, when_full="wait", wait_timeout=${waitSeconds}`})
run = client.run(external_run_id="${name}")
task = run.task("work")
run.event("first")
# The thread may be late, and must take nothing before or after that.
while client.stats.retries == 0:
    client.flush(0.05)
most = 0
for i in range(${EVENTS}):
    task.event("step", {"i": i, "text": "${TEXT}"})
    most = max(most, client.stats.queued_bytes)
task.complete()
run.complete()
assert client.stats.queued + client.stats.dropped == ${EVENTS + 5}
finish(most)`)
}

/** Runs a program that calls `finish` when the service is to come back. */
async function inPython(code: string): Promise<Told> {
  const { url, restore } = interrupted()
  const program = await startPython(
    `errors = []
def new_client(**options):
    return Client(**{"buffer_bytes": ${BUFFER}, "flush_interval": 0.005, "on_error": errors.append, **options})
def finish(most=0):
    print("full", flush=True)
    client.close(60)
    told = [[error.reason, error.reports] for error in errors]
    print(json.dumps({**client.stats._asdict(), "told": told, "most": most}))
${code}`,
    { ...env, AGENT_RUN_URL: url },
  )
  const problems = new Response(program.stderr).text()
  let output = ''
  for await (const chunk of program.stdout) {
    output += new TextDecoder().decode(chunk)
    if (output.includes('full\n')) restore()
  }
  expect(await problems).toBe('')
  return JSON.parse(output.slice('full\n'.length))
}

async function runNamed(name: string) {
  const { items } = (await service.api('GET', `/api/v1/runs?external_run_id=${name}`)).data
  return items[0]
}

async function stepsOf(runId: string): Promise<number[]> {
  const { items } = (await service.api('GET', `/api/v1/runs/${runId}/events?type=step&limit=200`)).data
  return items.map(({ payload }: { payload: { i: number } }) => payload.i)
}

const LONG_RUNS = [
  ['TypeScript', longRunInTypeScript] as const,
  ...(python === null ? [] : [['Python', longRunInPython] as const]),
]

describe.each(LONG_RUNS)('a full buffer of the %s client', (language, report) => {
  test.each([
    ['drops the oldest events by default', {}],
    ['drops them after a wait that has a limit', { whenFull: 'wait', waitSeconds: 0.2 }],
  ] as const)('%s, and says so once', async (_, options) => {
    const name = `${language} ${'whenFull' in options}`
    const { told, most, ...stats } = await report(name, options)
    const run = await runNamed(encodeURIComponent(name))
    expect(run.status).toBe('completed')
    const steps = await stepsOf(run.run_id)
    // The newest are there, without a gap, with the start, the task and the end.
    expect(steps.length).toBeGreaterThan(50)
    expect(steps).toEqual(Array.from({ length: steps.length }, (_, i) => EVENTS - steps.length + i))
    expect((await service.api('GET', `/api/v1/runs/${run.run_id}/tasks`)).data.items).toMatchObject([
      { name: 'work', status: 'completed' },
    ])
    expect(most).toBeLessThan(BUFFER * 1.1)
    // A start, the first event, two states of the task and an end.
    expect(stats).toMatchObject({ dropped: EVENTS - steps.length, acknowledged: steps.length + 5, rejected: 0 })
    // Once when it begins, and once with all that followed.
    expect(told.length).toBeLessThanOrEqual(2)
    expect(told.every(([reason]) => reason === 'dropped')).toBe(true)
    expect(told.reduce((sum, [, reports]) => sum + reports, 0)).toBe(stats.dropped)
  })
})

const PARENTS = 100
const SMALL_BUFFER = 30_000

/** Reports many short runs, each with a child run, and one that goes on. The names of parents end in their number. */
async function shortRunsInTypeScript(name: string): Promise<Told> {
  const { url, restore } = interrupted()
  const { client, errors } = newClient(url, { bufferBytes: SMALL_BUFFER })
  for (let i = 0; i < PARENTS; i++) {
    const parent = client.startRun({ externalRunId: `${name}-${i}`, input: { text: TEXT } })
    const child = client.startRun({ parentRunId: parent.runId, input: { text: TEXT } })
    child.startTask('one').complete()
    void child.event('step', { i })
    parent.complete()
    // It outlives its parent.
    child.complete()
  }
  restore()
  await client.close(60_000)
  return { ...client.stats, most: 0, told: toldOf(errors) }
}

async function shortRunsInPython(name: string): Promise<Told> {
  return inPython(`
client = new_client(buffer_bytes=${SMALL_BUFFER})
for i in range(${PARENTS}):
    parent = client.run(external_run_id=f"${name}-{i}", input={"text": "${TEXT}"})
    child = client.run(parent_run_id=parent.run_id, input={"text": "${TEXT}"})
    child.task("one").complete()
    child.event("step", {"i": i})
    parent.complete()
    child.complete()
finish()`)
}

const SHORT_RUNS = [
  ['TypeScript', shortRunsInTypeScript] as const,
  ...(python === null ? [] : [['Python', shortRunsInPython] as const]),
]

test.each(SHORT_RUNS)('%s: the oldest runs are dropped as a whole, with their children', async (language, report) => {
  const name = `short-${language}`
  const { told, most: _, ...stats } = await report(name)
  // What the service knows nothing of, it refuses.
  expect(stats).toMatchObject({ rejected: 0 })
  expect(stats.acknowledged + stats.dropped).toBe(PARENTS * 7)
  expect(told.every(([reason]) => reason === 'dropped')).toBe(true)
  expect((await runNamed(`${name}-${PARENTS - 1}`)).status).toBe('completed')
  expect(await runNamed(`${name}-${PARENTS >> 1}`)).toBeUndefined()
  const { items } = (await service.api('GET', '/api/v1/runs?status=running')).data
  expect(items).toEqual([])
})

describe.skipIf(python === null)('an event loop of Python', () => {
  test.each([
    ['by default', ''],
    ['with when_full="wait"', 'when_full="wait", wait_timeout=600'],
  ])('goes on while the service is away, %s', async (_, options) => {
    const { acknowledged, dropped } = await inPython(`
import asyncio
client = Client(on_error=errors.append, ${options})
async def main():
    run, ticks, is_over = client.run(), 0, False
    async def tick():
        nonlocal ticks
        while not is_over:
            ticks += 1
            await asyncio.sleep(0)
    ticking = asyncio.create_task(tick())
    for i in range(300):
        run.event("step", {"text": "x" * 20_000})
        await asyncio.sleep(0)
    is_over = True
    await ticking
    run.complete()
    assert ticks > 200 and client.stats.queued_bytes < 2 * 2**21, (ticks, client.stats)
asyncio.run(main())
finish()`)
    expect(acknowledged + dropped).toBe(302)
    expect(dropped).toBeGreaterThan(50)
  })
})
