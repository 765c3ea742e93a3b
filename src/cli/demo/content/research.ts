import { note, type Profile, type RunPlan, type Step, task } from '../plan.ts'
import type { Random } from '../random.ts'
import { GEMINI, Talk } from '../talk.ts'
import { type ResearchCase, TEXTS } from './texts.ts'

const { system, cases } = TEXTS.research

const FAILURE_RATE = 0.06
const BLOCKED_RATE = 0.15

/** Answers questions from sources, which it reads at the same time; reported by OpenTelemetry. */
export const research: Profile = {
  name: 'Research desk',
  description: 'Answers questions from sources that it searches and reads. Reports by OpenTelemetry.',
  sender: 'otlp',
  share: 2,
  versions: [
    { release: '1.1.0', model: 'gemini-2.5-flash', sources_max: 3 },
    { release: '1.2.0', model: 'gemini-2.5-pro', sources_max: 5 },
  ],
  episode(random) {
    const each = random.pick(cases)
    const session = `research-${random.int(1_000, 9_999)}`
    const analyst = random.pick(TEXTS.people.colleagues)
    const base = {
      triggerType: 'sdk',
      sessionId: session,
      externalUserId: analyst,
      tags: ['research', random.chance(0.3) ? 'priority:high' : 'priority:normal'],
      metadata: {},
    } as const
    if (random.chance(FAILURE_RATE)) return [{ ...base, input: { question: each.question }, ...blocked(each, random) }]
    const first: RunPlan = { ...base, input: { question: each.question }, ...answered(each, random) }
    if (each.followUp === undefined) return [first]
    const { question, answer } = each.followUp
    const talk = new Talk(random, GEMINI, system).before(each.question, each.answer).user(question)
    const steps = [task('write the answer', [talk.says(answer)])]
    return [first, { ...base, input: { question }, steps, outcome: { status: 'completed', output: { answer } } }]
  },
}

function search({ question, queries, sources }: ResearchCase, talk: Talk): Step {
  talk.user(question)
  const calls = queries.map((query) => ({
    tool: 'web_search',
    args: { query },
    result: { results: sources.map(({ url }) => url) },
    typicalMs: 420,
  }))
  return task('search', talk.uses(...calls), { input: { question }, output: { queries: queries.length } })
}

function answered(each: ResearchCase, random: Random): Pick<RunPlan, 'steps' | 'outcome'> {
  const talk = new Talk(random, GEMINI, system)
  const found = search(each, talk)
  const reads = each.sources.map(({ url, says }): Step[] => {
    const reader = new Talk(random, GEMINI, system).user(`What does ${url} say about: ${each.question}`)
    const error = random.chance(BLOCKED_RATE) ? 'HTTP 429: too many requests' : undefined
    const read = { tool: 'fetch_page', args: { url }, result: { text: says }, typicalMs: 600, error }
    const again = error === undefined ? [] : reader.uses({ ...read, error: undefined })
    return [
      task(`read ${new URL(url).host}`, [...reader.uses(read), ...again, reader.says(says)], {
        output: { quote: says },
      }),
    ]
  })
  const steps: Step[] = [
    found,
    task('read the sources', [{ kind: 'branches', branches: reads }], { output: { read: reads.length } }),
    task('write the answer', [
      talk.says(each.answer),
      note('info', 'citation', { sources: each.sources.map(({ url }) => url) }),
    ]),
  ]
  return { steps, outcome: { status: 'completed', output: { answer: each.answer, sources: reads.length } } }
}

function blocked(each: ResearchCase, random: Random): Pick<RunPlan, 'steps' | 'outcome'> {
  const talk = new Talk(random, GEMINI, system)
  const message = 'No source could be read: all of them refused the reader'
  const found = search(each, talk)
  const reads = each.sources.map(({ url }) => ({
    tool: 'fetch_page',
    args: { url },
    result: {},
    typicalMs: 900,
    error: 'HTTP 403: automated access is not allowed',
  }))
  const steps: Step[] = [
    found,
    task('read the sources', [...talk.uses(...reads), note('error', 'agent.gave_up', { message })], { error: message }),
  ]
  return { steps, outcome: { status: 'failed', message, detail: { reason: 'blocked', tried: reads.length } } }
}
