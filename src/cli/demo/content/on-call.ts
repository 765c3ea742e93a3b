import { note, type Profile, type RunPlan, type Step, task } from '../plan.ts'
import type { Random } from '../random.ts'
import { CLAUDE, HAIKU, Talk } from '../talk.ts'
import { type Alert, TEXTS } from './texts.ts'

const { system, analyst, alerts } = TEXTS.onCall

const FAILURE_RATE = 0.08

/** Looks into alerts, and has another agent analyse the logs. */
export const onCall: Profile = {
  name: 'On-call triage',
  description: 'Looks into alerts, has the logs analysed by another agent, and says what to do.',
  sender: 'client',
  share: 1,
  versions: [
    { release: '0.3.0', model: 'claude-3-7-sonnet' },
    { release: '0.4.0', model: 'claude-sonnet-4-5', pages_people: 'only when customers cannot order' },
  ],
  episode(random) {
    const each = random.pick(alerts)
    const id = `INC-${random.int(300, 990)}`
    return [
      {
        input: { alert: each.alert, service: each.service, incident: id },
        triggerType: 'webhook',
        externalRunId: id,
        sessionId: id,
        externalUserId: 'pager@larkspur.example',
        tags: ['on-call', `service:${each.service}`, `severity:${each.severity}`],
        metadata: { release: '0.4.0' },
        ...triage(each, random),
      },
    ]
  },
}

function triage(each: Alert, random: Random): Pick<RunPlan, 'steps' | 'outcome'> {
  const { alert, service, lines, cause, advice } = each
  const fails = random.chance(FAILURE_RATE)
  const talk = new Talk(random, CLAUDE, system).user(`${alert} (${service})`)
  const scope = talk.uses(
    {
      tool: 'list_deployments',
      args: { service, hours: 24 },
      result: { deployments: random.int(0, 4) },
      typicalMs: 190,
    },
    {
      tool: 'query_metrics',
      args: { service, metric: 'error_rate' },
      result: { now: 0.021, before: 0.002 },
      typicalMs: 310,
    },
  )
  const asked = task(
    'analyse the logs',
    [{ kind: 'child', to: logAnalyst.name, plan: analysis(each, random, fails) }],
    {
      error: fails ? 'the analysis failed' : undefined,
    },
  )
  const found = task('find what is affected', [...scope, asked], { input: { alert }, output: { service } })
  if (fails) {
    const message = 'The logs could not be analysed: access to the log store was denied'
    const detail = { reason: 'forbidden', store: 'logs', role: 'on-call-agent' }
    const steps: Step[] = [
      found,
      note('error', 'agent.gave_up', { message }),
      note('warn', 'person.paged', { to: 'duty engineer' }),
    ]
    return { steps, outcome: { status: 'failed', message, detail } }
  }
  talk.before('The analyst says:', `${cause}\n\n> ${lines.join('\n> ')}`).user('What should be done?')
  const steps: Step[] = [
    found,
    task('advise', [
      talk.says(advice),
      note(each.severity === 'high' ? 'warn' : 'info', 'incident.updated', { text: advice }, 90),
    ]),
  ]
  return { steps, outcome: { status: 'completed', output: { cause, advice } } }
}

/** Only works for other agents. */
export const logAnalyst: Profile = {
  name: 'Log analyst',
  description: 'Reads logs and metrics for other agents.',
  sender: 'client',
  share: 0,
  versions: [{ release: '0.2.0', model: 'claude-haiku-4-5' }],
  episode(random) {
    return [analysis(random.pick(alerts), random, false)]
  },
}

function analysis({ service, lines, cause }: Alert, random: Random, fails: boolean): RunPlan {
  const talk = new Talk(random, HAIKU, analyst).user(`What changed in ${service}?`)
  const error = fails ? 'HTTP 403: role on-call-agent may not read logs' : undefined
  const read = talk.uses({
    tool: 'search_logs',
    args: { service, level: 'error', minutes: 60 },
    result: { matches: random.int(20, 4_000), sample: lines },
    typicalMs: 800,
    error,
  })
  const base = {
    input: { service, question: 'What changed, and when?' },
    triggerType: 'sdk',
    tags: ['logs', `service:${service}`],
    metadata: { release: '0.2.0' },
  } as const
  if (error !== undefined) {
    const steps = [task('read the logs', read, { error })]
    return { ...base, steps, outcome: { status: 'failed', message: error, detail: { reason: 'forbidden' } } }
  }
  const steps = [task('read the logs', read, { output: { lines } }), talk.says(cause)]
  return { ...base, steps, outcome: { status: 'completed', output: { finding: cause, lines } } }
}
