import { beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { newAgent } from '../support/api.ts'
import { builtClient, runNode } from '../support/client-build.ts'
import { eventually } from '../support/eventually.ts'
import { python, runPython } from '../support/python.ts'
import { type Answer, accept, refuse, refuseRequest, reporterEnv, serveReports } from '../support/report-service.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** Only an answer of the service about a report removes it (docs/client.md#guarantees): both clients, as programs of their own. */

interface Told {
  readonly closed: boolean
  readonly acknowledged: number
  readonly rejected: number
  readonly dropped: number
  readonly errors: readonly { readonly reason: string; readonly reports: number; readonly text: string }[]
  readonly runId: string
}

type Env = Record<string, string>

/** Reports a run with ten events, closes the client and prints what became of it. Options are those of both clients. */
async function inNode(env: Env, before = ''): Promise<Told> {
  const program = runNode(
    `import { Client } from ${JSON.stringify(await builtClient())}
const errors = []
const client = new Client({ spool: process.env.SPOOL, flushIntervalMs: 5, flushAtExit: false,
  onError: ({ reason, reports, message }) => errors.push({ reason, reports, text: message }) })
let runId = ''
if (process.env.REPORT !== 'no') {
  const run = client.startRun()
  runId = run.runId
  ${before}
  for (let i = 0; i < 10; i++) run.event('step', { i })
  run.startTask('one').complete()
  run.complete()
}
const closed = await client.close(Number(process.env.CLOSE_SECONDS ?? 60) * 1000)
console.log(JSON.stringify({ ...client.stats, closed, errors, runId }))`,
    env,
  )
  if ((await program.ended) !== 0) throw new Error(program.output())
  return JSON.parse(program.output().trim().split('\n').at(-1)!)
}

async function inPython(env: Env, before = ''): Promise<Told> {
  const output = await runPython(
    `errors = []
client = Client(spool=os.environ.get("SPOOL"), flush_interval=0.005, flush_at_exit=False,
  on_error=lambda error: errors.append({"reason": error.reason, "reports": error.reports, "text": str(error)}))
run_id = ""
if os.environ.get("REPORT") != "no":
    run = client.run()
    run_id = run.run_id
    ${before}
    for i in range(10): run.event("step", {"i": i})
    run.task("one").complete()
    run.complete()
closed = client.close(float(os.environ.get("CLOSE_SECONDS", "60")))
print(json.dumps({**client.stats._asdict(), "closed": closed, "errors": errors, "runId": run_id}))`,
    env,
  )
  return JSON.parse(output.trim().split('\n').at(-1)!)
}

const CLIENTS = [['TypeScript', inNode] as const, ...(python === null ? [] : [['Python', inPython] as const])]
const envOf = (url: string): Env => ({
  AGENT_RUN_URL: url,
  AGENT_RUN_KEY: 'svc_agent_x',
  AGENT_RUN_AGENT_ID: crypto.randomUUID(),
})
/** A start, ten events, two states of a task, an end. */
const REPORTS = 14

const redirect = (status: number): Answer => {
  const elsewhere = serveReports(accept)
  return ({ path }) => new Response(null, { status, headers: { location: elsewhere.url + path } })
}
const json = (body: unknown, status = 200): Answer => {
  return () => Response.json(body, { status })
}

describe.each(CLIENTS)('the %s client', (_name, report) => {
  test.each([
    ['a redirect (302)', redirect(302)],
    ['a redirect (307)', redirect(307)],
    ['a redirect (308)', redirect(308)],
    ['200 {}', json({})],
    ['200 with nothing', () => new Response('')],
    ['200 in our envelope, about something else', json({ data: {}, error: null })],
    ['200 about another run', json({ data: { run_id: crypto.randomUUID() }, error: null })],
    ['404 in our envelope', refuse(404, 'NOT_FOUND')],
    ['400 in our envelope', refuse(400, 'VALIDATION_ERROR')],
    ['401', refuse(401, 'UNAUTHENTICATED')],
    ['403', refuse(403, 'FORBIDDEN')],
    ['405', refuse(405, 'METHOD_NOT_ALLOWED')],
    ['an error whose envelope is none', json({ error: { code: 3 } }, 400)],
  ] as const)('loses nothing to %s', async (_, wrong) => {
    const served = serveReports(wrong, wrong, wrong, accept)
    const told = await report(envOf(served.url))
    expect(told).toMatchObject({ closed: true, acknowledged: REPORTS, rejected: 0, dropped: 0, errors: [] })
  })

  test('believes a refusal of the request, and counts it', async () => {
    const { url } = serveReports(refuseRequest(404, 'NOT_FOUND'))
    const told = await report(envOf(url))
    expect(told).toMatchObject({ closed: true, acknowledged: 0, rejected: REPORTS, dropped: 0 })
    expect(told.errors[0]).toEqual({ reason: 'rejected', reports: 1, text: '1 report rejected: NOT_FOUND: why' })
  })

  test('a batch that is refused as a whole is sent in parts, so that one bad event takes no other', async () => {
    const { url } = serveReports((call) =>
      call.text.includes('"i":7') ? refuseRequest(400, 'VALIDATION_ERROR')(call) : accept(call),
    )
    const told = await report(envOf(url))
    expect(told).toMatchObject({ closed: true, acknowledged: REPORTS - 1, rejected: 1 })
    expect(told.errors).toMatchObject([{ reason: 'rejected', reports: 1 }])
  })

  test.each(['99999999999', '9'.repeat(400), '²', '-5', 'soon'])(
    'takes Retry-After: %s for a wait of limits',
    async (text) => {
      const headers = new Headers()
      headers.set('retry-after', text)
      const { url, received } = serveReports(() => Response.json(null, { status: 503, headers }))
      const told = await report({ ...envOf(url), CLOSE_SECONDS: '1' })
      expect(told).toMatchObject({ closed: false, dropped: REPORTS })
      expect(told.errors.at(-1)!.text).toContain('status 503, not a response of the service')
      expect(received.length).toBeLessThan(20)
    },
  )

  test('says after ten seconds, once, that reports are delayed, and why', async () => {
    const { url } = serveReports(redirect(302))
    const { errors } = await report({
      ...envOf(url),
      CLOSE_SECONDS: '20',
      SPOOL: join(await temporaryDirectory(), 's'),
    })
    expect(errors).toMatchObject([{ reason: 'delayed', reports: REPORTS }])
    expect(errors[0]!.text).toContain('not a response of the service, but a redirect to http://127.0.0.1:')
  })
})

describe.each(CLIENTS)('the %s client and the running service', (name, report) => {
  let service: TestService
  let env: Env
  beforeAll(async () => {
    service = await startTestService()
    env = await reporterEnv(service)
  })
  const eventsOf = (runId: string) =>
    eventually(async () => (await service.api('GET', `/api/v1/runs/${runId}/events`)).data.items)

  test.each([
    ['a wrong path', async () => ({ AGENT_RUN_URL: `${service.url}/wrong` })],
    ['a wrong key', async () => ({ AGENT_RUN_KEY: 'svc_agent_wrong' })],
    ['a workspace key', async () => ({ AGENT_RUN_KEY: service.workspaceKey })],
    [
      'the key of a suspended workspace',
      async () => {
        const other = await startTestService({ OPERATOR_TOKEN: 'operator-token-of-this-test' })
        const { agentKey } = await newAgent(other.api)
        const operator = { key: 'operator-token-of-this-test' }
        const { items } = (await other.api('GET', '/api/v1/workspaces', undefined, operator)).data
        for (const { workspace_id } of items)
          await other.api('PATCH', `/api/v1/workspaces/${workspace_id}`, { status: 'suspended' }, operator)
        return { AGENT_RUN_URL: other.url, AGENT_RUN_KEY: agentKey }
      },
    ],
  ])('keeps its spool at %s; the next client sends it', async (what, wrong) => {
    const SPOOL = join(await temporaryDirectory(), 'spool')
    const first = await report({ ...env, ...(await wrong()), SPOOL, CLOSE_SECONDS: '1' })
    expect(first).toMatchObject({ closed: false, acknowledged: 0, rejected: 0, dropped: 0 })
    const told = { reason: 'delayed', text: expect.stringContaining('the key is a workspace key (svc_ws_…)') }
    expect(first.errors).toMatchObject(what === 'a workspace key' ? [told] : [])
    const second = await report({ ...env, SPOOL, REPORT: 'no' })
    expect(second).toMatchObject({ closed: true, acknowledged: REPORTS, rejected: 0, errors: [] })
    expect(await eventsOf(first.runId)).toHaveLength(10)
  })

  test.each([['memory'], ['a spool']])('an event of 50 MB takes no other with it (%s)', async (place) => {
    const large =
      name === 'Python'
        ? 'run.event("large", {"text": "x" * 50_000_000})'
        : `run.event('large', { text: 'x'.repeat(50_000_000) })`
    const spool: Env = place === 'memory' ? {} : { SPOOL: join(await temporaryDirectory(), 'spool') }
    const told = await report({ ...env, ...spool }, large)
    expect(told).toMatchObject({ closed: true, acknowledged: REPORTS })
    expect(told.errors).toMatchObject([{ reason: place === 'memory' ? 'dropped' : 'rejected', reports: 1 }])
    expect(await eventsOf(told.runId)).toHaveLength(10)
  })
})
