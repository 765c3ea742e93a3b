import { beforeAll, describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import packageJson from '../../package.json'
import { newAgent } from '../support/api.ts'
import { callTurn, startHostedRig } from '../support/hosted-rig.ts'
import { runTool } from '../support/processes.ts'
import { PACKAGE, python, runPython, startPython } from '../support/python.ts'
import { freePort, spawnService, startTestService, type TestService } from '../support/service.ts'
import { temporaryDirectory } from '../support/teardown.ts'
import { packagingPython } from '../support/tools.ts'

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
with client.run(input={"q": "é🎉"}, tags=["py"], external_run_id="mine", session_id="a chat", external_user_id="ada") as run:
    print(run.run_id)
    run.event("llm.call", {"model": "m", "text": "ä\\ud800"})
    with run.task("search", input={"q": 1}) as task:
        task.event("tool.call", {"n": 2}, level="warn")
        with task.task("fetch"):
            time.sleep(0.003)
            run.event("within")
            run.task("inner").event("on the task")
        run.event("named", task_id=task.task_id)
        task.output = [1, 2]
    run.event("after")
    run.output = {"answer": 42}`)
    ).trim()
    expect(await read(runId)).toMatchObject({
      ...{ status: 'completed', input: { q: 'é🎉' }, output: { answer: 42 }, tags: ['py'], external_run_id: 'mine' },
      ...{ session_id: 'a chat', external_user_id: 'ada' },
    })
    const { items } = await read(`${runId}/events`)
    expect(items).toMatchObject([
      { type: 'llm.call', level: 'info', payload: { model: 'm', text: 'ä\ud800' } },
      { type: 'tool.call', level: 'warn', payload: { n: 2 } },
      ...['within', 'on the task', 'named', 'after'].map((type) => ({ type })),
    ])
    const tasks = Object.fromEntries(
      (await read(`${runId}/tasks`)).items.map((each: { name: string }) => [each.name, each]),
    )
    expect(tasks.search).toMatchObject({ status: 'completed', input: { q: 1 }, output: { value: [1, 2] } })
    expect(tasks.fetch).toMatchObject({ status: 'completed', parent_task_id: tasks.search.id })
    expect(tasks.inner).toMatchObject({ parent_task_id: tasks.fetch.id })
    const { search, fetch, inner } = tasks
    expect(items.map(({ task_id }: { task_id?: string }) => task_id)).toEqual([
      ...[undefined, search.id, fetch.id, inner.id, search.id, undefined],
    ])
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

  test('a start and an end that are reported twice at once are both settled, and take nothing with them', async () => {
    const output = await run(`errors = []
client = Client(on_error=errors.append)
run_id = "0198f2aa-1111-7000-8000-0000000000aa"
for text in ("one", "two"):
    with client.run(run_id=run_id) as run:
        run.event("step", {"text": text})
print(client.flush(timeout=20))
print(json.dumps([client.stats._asdict(), [str(e) for e in errors]]))
client.close()`)
    const [isDone, told] = output.trim().split('\n')
    const [stats, errors] = JSON.parse(told!)
    expect([isDone, errors]).toEqual(['True', []])
    expect(stats).toMatchObject({ acknowledged: 6, queued: 0, queued_bytes: 0 })
  })

  test('on_error may wait for a thread that reports, as the lock of a logging handler makes it', async () => {
    const output = await run(`handler, held = threading.RLock(), threading.Event()
def on_error(error):
    with handler:
        pass
client = Client(url="http://127.0.0.1:1", on_error=on_error, flush_at_exit=False)
run = client.run()
client.close(timeout=0.1)
def log():
    with handler:
        held.set()
        time.sleep(0.5)
        run.event("in the handler")
def report():
    held.wait()
    run.event("dropped, because the client is closed")
threads = [threading.Thread(target=act, daemon=True) for act in (log, report)]
for each in threads: each.start()
for each in threads: each.join(timeout=10)
print([each.is_alive() for each in threads], flush=True)
os._exit(0)`)
    expect(output.trim()).toBe('[False, False]')
  })

  test('scores of a run, its parts and an earlier run are there once; what is refused takes no others with it', async () => {
    const spool = join(await temporaryDirectory(), 'spool')
    const output = await run(
      `errors = []
client = Client(on_error=errors.append, spool=os.environ["SPOOL"])
with client.run() as run:
    run.event("llm.call", id="call-1")
    run.score("correct", True)
    run.score("similarity", 0.25, id="s1")
    run.score("similarity", 0.75, id="s1", comment="again", source="judge", metadata={"model": "m"})
    run.score("answer", "right", event_id="call-1")
    run.score("", 1)
    run.score("nan", float("nan"))
    run.score("two", "a", label="b")
    with run.task("step") as task:
        task.score("review", text="é🎉")
client.score(run.run_id, "feedback", False, id="user-1", source="person")
client.close()
owner = Client(key="${service.workspaceKey}")
print(json.dumps([list(owner.runs.scores(run.run_id))[::-1], task.task_id, [[e.reason, e.reports] for e in errors]]))`,
      { SPOOL: spool },
    )
    const [scores, taskId, errors] = JSON.parse(output)
    expect(scores).toMatchObject([
      { name: 'correct', value: true, label: null, source: 'api', task_id: null },
      { name: 'similarity', value: 0.75, id: 's1', comment: 'again', source: 'judge', metadata: { model: 'm' } },
      { name: 'answer', value: null, label: 'right', event_id: 'call-1' },
      { name: 'review', text: 'é🎉', task_id: taskId },
      { name: 'feedback', value: false, source: 'person' },
    ])
    expect(errors.toSorted()).toEqual([
      ['invalid', 1],
      ['invalid', 1],
      ['rejected', 1],
    ])
  })

  test('a workspace key is told at the first report, with the call that makes a key of the agent', async () => {
    const output = await run(`errors = []
client = Client(key="${service.workspaceKey}", on_error=errors.append)
next(client.runs.list())
before = len(errors)
client.run()
client.run()
print(json.dumps([before, [[e.reason, e.reports, str(e)] for e in errors]]))
client.close(0)`)
    const [before, told] = JSON.parse(output)
    expect([before, told.length]).toEqual([0, 1])
    expect(told[0]).toEqual(['delayed', 1, expect.stringContaining(`/api/v1/agents/${agent.agentId}/keys -H`)])
  })

  test('SIGTERM sends what was reported, and then ends the program', async () => {
    const child = await start(`client = Client(flush_interval=60)
run = client.run()
for i in range(10):
    run.event("step", {"i": i})
print(run.run_id)
# A signal that comes just before a long sleep would wait for its end.
while True: time.sleep(0.05)`)
    const reader = child.stdout.getReader()
    const runId = new TextDecoder().decode((await reader.read()).value).trim()
    child.kill('SIGTERM')
    await child.exited
    expect(child.signalCode).toBe('SIGTERM')
    expect((await read(`${runId}/events`)).items).toHaveLength(10)
  })

  test('at the bound, the oldest are dropped and counted, and "wait" waits', async () => {
    const nowhere = `http://127.0.0.1:${freePort()}`
    const dropping = await run(`errors = []
client = Client(url="${nowhere}", buffer_bytes=20_000, on_error=errors.append)
run = client.run()
for i in range(100): run.event("step", {"text": "x" * 1000})
before = client.stats
client.close(0.1)
print(json.dumps([before._asdict(), client.stats.dropped, sum(e.reports for e in errors), client.close()]))`)
    const [before, dropped, told] = JSON.parse(dropping)
    expect(before.queued + before.dropped).toBe(101)
    expect(before.dropped).toBeGreaterThan(70)
    expect([dropped, told]).toEqual([101, 101])
    const waiting = await run(`client = Client(when_full="wait", wait_timeout=600, buffer_bytes=20_000)
run = client.run()
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
run = client.run()
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

  test('lists are read to their end, runs and agents by id, and a call that fails names its request', async () => {
    const output = await run(
      `client = Client()
ids = []
for i in range(3):
    with client.run(tags=["many"], input={"message": "Hi"}) as run:
        for n in range(2): run.event("step", {"n": n})
        with run.task("one"): pass
    ids.append(run.run_id)
client.close()
owner = Client(key=os.environ["WORKSPACE_KEY"])
listed = [run["run_id"] for run in owner.runs.list(tag="many", limit=2)]
events = [event["payload"]["n"] for event in owner.runs.events(ids[0], limit=1)]
tasks = [task["name"] for task in owner.runs.tasks(ids[0])]
said = [part["text"] for message in owner.runs.conversation(ids[0]) for part in message["parts"]]
agent = owner.agents.get(owner.runs.get(ids[0])["agent_id"])
try: owner.runs.get("no/id")
except ServiceError as error: refused = [error.status, error.code, bool(error.request_id)]
edits = [owner.runs.update(ids[0], tags=["edited"], if_version=1)["version"]]
try: owner.runs.update(ids[0], tags=["late"], if_version=1)
except ServiceError as error: edits.append(error.reason)
versions = [(each["version"], each["restored_from"]) for each in owner.agents.versions(agent["agent_id"])]
restored = owner.agents.restore(agent["agent_id"], 1)["name"] == owner.agents.version(agent["agent_id"], 1)["name"]
print(json.dumps([edits, versions, restored, listed == ids[::-1], events, tasks, said, agent["agent_id"], refused,
                  agent["name"] in [each["name"] for each in owner.agents.list()],
                  list(owner.approvals.list()), list(owner.input_requests.list(status="pending"))]))`,
      { WORKSPACE_KEY: service.workspaceKey },
    )
    expect(JSON.parse(output)).toEqual([
      [2, 'version_changed'],
      [[1, null]],
      true,
      true,
      [0, 1],
      ['one'],
      ['Hi'],
      agent.agentId,
      [400, 'VALIDATION_ERROR', true],
      true,
      [],
      [],
    ])
  })

  test('hosted agents are invoked, approved, rejected and answered', async () => {
    const rig = await startHostedRig()
    const pays = () => [callTurn(['pay', { n: 7 }]), { text: 'paid' }]
    const payer = () => rig.agent(rig.service, pays(), { tools: [rig.tools.tool('pay', { requires_approval: true })] })
    const asks = [callTurn(['request_input', { question: 'Which?' }]), { text: 'Thanks.' }]
    const [first, second] = [await payer(), await payer()]
    const curious = await rig.agent(rig.service, asks, { allow_input_requests: true })
    const output = await runPython(
      `client = Client()
paused = client.agents.invoke(os.environ["FIRST"], {"message": "Pay."})
paid = client.approvals.approve(paused["awaiting_approval"]["approval_id"], comment="yes", edited_input={"n": 8})
paused = client.agents.invoke(os.environ["SECOND"])
rejected = client.approvals.reject(paused["awaiting_approval"]["approval_id"], comment="too much")
asked = client.agents.invoke(os.environ["CURIOUS"])
answered = client.input_requests.answer(asked["awaiting_input"]["request_id"], "a")
begun = client.agents.invoke(os.environ["FIRST"], background=True)
is_begun = begun["status"] in ("queued", "running", "awaiting_approval")
print(json.dumps([paid["output"], rejected["status"], answered["output"], is_begun, client.runs.cancel(begun["run_id"])["status"]]))`,
      {
        ...{ AGENT_RUN_URL: rig.service.url, AGENT_RUN_KEY: rig.service.workspaceKey },
        ...{ FIRST: first.agentId, SECOND: second.agentId, CURIOUS: curious.agentId },
      },
    )
    expect(JSON.parse(output)).toEqual([{ text: 'paid' }, 'completed', { text: 'Thanks.' }, true, 'cancelled'])
    expect(rig.tools.of('pay')[0]).toMatchObject({ input: { n: 8 } })
  })

  test('an attempt ends in time although the response trickles, calls are repeated so often, and say who calls', async () => {
    const agents: (string | null)[] = []
    await using server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch({ headers, url }) {
        agents.push(headers.get('user-agent'))
        if (url.endsWith('/busy'))
          return new Response('{"data":null,"error":{"code":"UNAVAILABLE","message":"why"}}', {
            ...{ status: 503, headers: { 'x-request-id': 'request-1' } },
          })
        const trickle = async function* () {
          for (;;) {
            yield ' '
            await Bun.sleep(50)
          }
        }
        return new Response(trickle() as unknown as ReadableStream)
      },
    })
    const output = await run(
      `client = Client(timeout=0.5, max_retries=0)
begun = time.monotonic()
try: client.request("GET", "/slow")
except NoResponseError as error: print(error)
print(0.4 < time.monotonic() - begun < 5)
try: client.request("GET", "/busy", max_retries=2)
except NoResponseError as error: print(error.request_id)`,
      { AGENT_RUN_URL: server.url.origin },
    )
    expect(output.trim().split('\n')).toEqual([
      expect.stringMatching(/^the call to \/slow failed: .*(in time|timed out)/),
      ...['True', 'request-1'],
    ])
    expect(agents).toEqual(Array(4).fill(`agent-run-service-python/${packageJson.version}`))
  })

  test('every event is there once although the service is killed in between; queries and requests work', async () => {
    const PORT = String(freePort())
    const first = await spawnService({ PORT, LOG_LEVEL: 'silent' })
    const { agentId, agentKey } = await newAgent(first.api)
    const child = await start(
      `client = Client(flush_interval=0.01, when_full="wait", wait_timeout=600)
run = client.run()
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
  })
})

/** Building needs setuptools, wheel and venv. Without them the test is reported as skipped, with this name. */
const builder = packagingPython()
const withPackaging = test.skipIf(builder === undefined)
const packaging = builder === undefined ? ' (python3 has no setuptools, wheel and venv)' : ''

withPackaging(`the package of the Python client installs offline and reports a run${packaging}`, async () => {
  const [folder, project] = [await temporaryDirectory(), await temporaryDirectory()]
  await cp(PACKAGE, project, { recursive: true })
  const build = 'import sys; from setuptools.build_meta import build_wheel; print(build_wheel(sys.argv[1]))'
  const built = await runTool([builder!, '-c', build, folder], project)
  const wheel = built.trim().split('\n').at(-1)
  expect(wheel).toBe(`agent_run_service-${packageJson.version}-py3-none-any.whl`)
  await runTool([builder!, '-m', 'venv', 'venv'], folder)
  const own = join(folder, 'venv', 'bin', 'python3')
  await runTool([own, '-m', 'pip', 'install', '--no-index', '--no-deps', join(folder, wheel!)], folder)
  const code = `from agent_run_service import Client
import importlib.metadata, importlib.resources
about = importlib.metadata.metadata("agent-run-service")
print(about["License"], "# " in about.get_payload(), importlib.resources.files("agent_run_service").joinpath("py.typed").is_file())
with Client() as client:
    with client.run() as run: pass
print(run.run_id)`
  const [shown, runId] = (await runTool([own, '-c', code], folder, { env })).trim().split('\n')
  expect(shown).toBe('MIT True True')
  expect((await read(runId!)).status).toBe('completed')
})
