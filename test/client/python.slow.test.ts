import { beforeAll, describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { newAgent } from '../support/api.ts'
import { python, runPython, startPython } from '../support/python.ts'
import { freePort, spawnService, startTestService, type TestService } from '../support/service.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** The Python client (docs/client.md#python), with real programs and the running service. */

/** Tests without Python are reported as skipped, with this name. */
const withPython = describe.skipIf(python === null)
const name = python === null ? 'the Python client (python3 is not installed)' : 'the Python client'

let service: TestService
let env: Record<string, string>
let agent: { agentId: string; agentKey: string }
beforeAll(async () => {
  if (python === null) return
  service = await startTestService()
  agent = await newAgent(service.api)
  env = { AGENT_RUN_URL: service.url, AGENT_RUN_KEY: agent.agentKey, AGENT_RUN_AGENT_ID: agent.agentId }
})

const start = (code: string, more: Record<string, string> = {}) => startPython(code, { ...env, ...more })
const run = (code: string, more: Record<string, string> = {}) => runPython(code, { ...env, ...more })

const read = async (path: string) => (await service.api('GET', `/api/v1/runs/${path}`)).data

withPython(name, () => {
  test('reports runs, events and nested tasks with context managers, and flushes at exit', async () => {
    const runId = (
      await run(`client = Client()
with client.run(input={"q": "é🎉"}, tags=["py"], external_run_id="mine") as run:
    print(run.run_id)
    run.event("llm.call", {"model": "m", "text": "ä\\ud800"})
    with run.task("search", input={"q": 1}) as task:
        task.event("tool.call", {"n": 2}, level="warn")
        with task.task("fetch"):
            time.sleep(0.003)
        task.output = [1, 2]
    run.output = {"answer": 42}`)
    ).trim()
    expect(await read(runId)).toMatchObject({
      ...{ status: 'completed', input: { q: 'é🎉' }, output: { answer: 42 }, tags: ['py'], external_run_id: 'mine' },
    })
    const { items } = await read(`${runId}/events`)
    expect(items).toMatchObject([
      { type: 'llm.call', level: 'info', payload: { model: 'm', text: 'ä\ud800' } },
      { type: 'tool.call', level: 'warn', payload: { n: 2 } },
    ])
    const tasks = Object.fromEntries(
      (await read(`${runId}/tasks`)).items.map((each: { name: string }) => [each.name, each]),
    )
    expect(tasks.search).toMatchObject({ status: 'completed', input: { q: 1 }, output: { value: [1, 2] } })
    expect(tasks.fetch).toMatchObject({ status: 'completed', parent_task_id: tasks.search.id })
    expect(Date.parse(tasks.fetch.completed_at) - Date.parse(tasks.fetch.started_at)).toBeGreaterThanOrEqual(2)
  })

  test('a run fails with the exception, which goes on; what is refused takes nothing with it', async () => {
    const output = await run(`errors = []
client = Client(on_error=errors.append)
try:
    with client.run() as run:
        run.event("good")
        run.event("run.started")
        run.event("bad", {"x": object()})
        run.event("good")
        raise KeyError("no answer")
except KeyError as error:
    print(run.run_id)
client.close()
print(json.dumps([[e.reason, e.reports] for e in errors] + [client.stats._asdict()]))`)
    const [runId, told] = output.trim().split('\n')
    expect(await read(runId!)).toMatchObject({
      ...{ status: 'failed', error_message: "'no answer'", error_detail: { name: 'KeyError' } },
    })
    expect((await read(`${runId}/events`)).items).toHaveLength(2)
    const [invalid, rejected, stats] = JSON.parse(told!)
    expect([invalid, rejected]).toEqual([
      ['invalid', 1],
      ['rejected', 1],
    ])
    expect(stats).toMatchObject({ acknowledged: 4, rejected: 2, dropped: 0, queued: 0, queued_bytes: 0 })
  })

  test('SIGTERM sends what was reported, and then ends the program', async () => {
    const child = await start(`client = Client(flush_interval=60)
run = client.start()
for i in range(10):
    run.event("step", {"i": i})
print(run.run_id)
time.sleep(60)`)
    const reader = child.stdout.getReader()
    const runId = new TextDecoder().decode((await reader.read()).value).trim()
    child.kill('SIGTERM')
    await child.exited
    expect(child.signalCode).toBe('SIGTERM')
    expect((await read(`${runId}/events`)).items).toHaveLength(10)
  })

  test('at the bound, "drop" drops and counts, and "wait" waits', async () => {
    const nowhere = `http://127.0.0.1:${freePort()}`
    const dropping = await run(`errors = []
client = Client(url="${nowhere}", when_full="drop", buffer_bytes=20_000, on_error=errors.append)
run = client.start()
for i in range(100): run.event("step", {"text": "x" * 1000})
before = client.stats
client.close(0.1)
print(json.dumps([before._asdict(), client.stats.dropped, sum(e.reports for e in errors), client.close()]))`)
    const [before, dropped, told] = JSON.parse(dropping)
    expect(before.queued + before.dropped).toBe(101)
    expect(before.dropped).toBeGreaterThan(70)
    expect([dropped, told]).toEqual([101, 101])
    const waiting = await run(`client = Client(buffer_bytes=20_000)
run = client.start()
most = 0
for i in range(3000):
    run.event("step", {"text": "x" * 100})
    most = max(most, client.stats.queued_bytes)
client.close()
print(json.dumps([most < 30_000, client.stats.acknowledged, client.stats.dropped]))`)
    expect(JSON.parse(waiting)).toEqual([true, 3001, 0])
  })

  test('the spool keeps the reports of a killed program and of an outage; one client uses it at a time', async () => {
    const spool = join(await temporaryDirectory(), 'spool')
    const nowhere = `http://127.0.0.1:${freePort()}`
    const killed = await start(
      `client = Client(spool=os.environ["SPOOL"], buffer_bytes=20_000)
run = client.start()
print(run.run_id)
for i in range(3000):
    run.event("step", {"i": i})
run.complete()
try: Client(spool=os.environ["SPOOL"])
except OSError as error: print(error)
os.kill(os.getpid(), signal.SIGKILL)`,
      { SPOOL: spool, AGENT_RUN_URL: nowhere },
    )
    const [runId, refusal] = (await new Response(killed.stdout).text()).trim().split('\n')
    expect(refusal).toBe(`the spool ${spool} is in use by another client`)
    const output = await run(
      `client = Client(spool=os.environ["SPOOL"], buffer_bytes=20_000)
print(client.stats.queued, client.close(60), client.stats.acknowledged)`,
      { SPOOL: spool },
    )
    expect(output.trim()).toBe('3002 True 3002')
    expect(existsSync(spool)).toBe(false)
    const { data } = await service.api('POST', '/api/v1/query', {
      query: `select count() as n, countIf(i != row) as misplaced from (
        select payload.i::UInt32 as i, row_number() over (order by seq) - 1 as row from events where run_id = {run:UUID})`,
      params: { run: runId },
      wait_for: (await read(`${runId}/events?limit=1&after_seq=0`)).items[0].seq + 2_999,
    })
    expect(data.rows).toEqual([{ n: 3_000, misplaced: 0 }])
    expect((await read(runId!)).status).toBe('completed')
  })

  test('a forked process reports for itself', async () => {
    const output = await run(`client = Client()
run = client.start()
run.event("parent")
client.flush()
if os.fork() == 0:
    run.event("child")
    print(client.flush(60))
    os._exit(0)
os.wait()
client.close()
print(run.run_id)`)
    const [flushed, runId] = output.trim().split('\n')
    expect(flushed).toBe('True')
    const types = (await read(`${runId}/events`)).items.map(({ type }: { type: string }) => type)
    expect(types.sort()).toEqual(['child', 'parent'])
  })

  test('every event is there once although the service is killed in between; queries and requests work', async () => {
    const PORT = String(freePort())
    const first = await spawnService({ PORT, LOG_LEVEL: 'silent' })
    const { agentId, agentKey } = await newAgent(first.api)
    const child = await start(
      `client = Client(flush_interval=0.01)
run = client.start()
for i in range(20000):
    run.event("step", {"i": i})
    if i % 500 == 0: time.sleep(0.01)
    if i == 10000: print("half")
run.complete()
client.close(60)
owner = Client(key=os.environ["WORKSPACE_KEY"])
rows = owner.query("select count() as n, uniqExact(payload.i::UInt32) as different from events where run_id = {run:UUID}",
                   {"run": run.run_id}, wait_for=client.stats.last_seq)["rows"]
print(json.dumps([rows, owner.request("GET", "/api/v1/runs/" + run.run_id)["status"], client.stats.retries > 0]))`,
      {
        AGENT_RUN_URL: first.url,
        AGENT_RUN_KEY: agentKey,
        AGENT_RUN_AGENT_ID: agentId,
        WORKSPACE_KEY: first.workspaceKey,
      },
    )
    const reader = child.stdout.getReader()
    expect(new TextDecoder().decode((await reader.read()).value).trim()).toBe('half')
    first.kill('SIGKILL')
    await first.exited
    const { dataDir: DATA_DIR, workspaceKey: BOOTSTRAP_WORKSPACE_KEY } = first
    const second = await spawnService({ PORT, DATA_DIR, BOOTSTRAP_WORKSPACE_KEY, LOG_LEVEL: 'silent' })
    let rest = ''
    for (let next = await reader.read(); !next.done; next = await reader.read())
      rest += new TextDecoder().decode(next.value)
    const problems = await new Response(child.stderr).text()
    expect(problems).toBe('')
    expect(JSON.parse(rest)).toEqual([[{ n: 20_000, different: 20_000 }], 'completed', true])
    second.kill('SIGTERM')
    await second.exited
  }, 120_000)
})
