import { note, type Profile, type RunPlan, type Step, task } from '../plan.ts'
import type { Random } from '../random.ts'
import { GPT, Talk } from '../talk.ts'
import { factsOf, fill } from './facts.ts'
import { type SupportTurn, TEXTS } from './texts.ts'

const { system, cases, failures } = TEXTS.support

const FAILURE_RATE = 0.07
const RETRY_RATE = 0.12

/** Chats with customers: a session for each conversation, a run for each turn. */
export const support: Profile = {
  name: 'Support chat',
  description: 'Answers customers in the chat of the shop: orders, deliveries, returns, accounts.',
  sender: 'client',
  share: 6,
  versions: [
    { release: '2.4.0', prompt: 'support-v11', model: 'gpt-4.1-mini' },
    { release: '2.5.0', prompt: 'support-v12', model: 'gpt-5-mini' },
    { release: '2.5.1', prompt: 'support-v13', model: 'gpt-5-mini', tone: 'answers in the language of the customer' },
  ],
  episode(random) {
    const facts = factsOf(random)
    const { intent, turns } = fill(random.pick(cases), facts)
    const user = random.pick(TEXTS.people.customers)
    const sessionId = `chat-${random.int(100_000, 999_999)}`
    const tier = random.pick(['standard', 'standard', 'plus', 'business'])
    const failsAt = random.chance(FAILURE_RATE) ? random.int(0, turns.length - 1) : turns.length
    return turns.slice(0, failsAt + 1).map((turn, index): RunPlan => {
      const talk = new Talk(random, GPT, system)
      for (const { customer, answer } of turns.slice(0, index)) talk.before(customer, answer)
      talk.user(turn.customer)
      const common = {
        input: { message: turn.customer },
        triggerType: 'webhook',
        sessionId,
        externalUserId: user,
        tags: ['support', `intent:${intent}`, `tier:${tier}`],
        metadata: { channel: random.pick(['web', 'web', 'app', 'email']), turn: index + 1, release: '2.5.1' },
      } as const
      return index === failsAt
        ? { ...common, ...failedTurn(talk, random) }
        : { ...common, ...answeredTurn(talk, turn, { intent, random }) }
    })
  },
}

interface TurnFacts {
  readonly intent: string
  readonly random: Random
}

function answeredTurn(talk: Talk, { uses, answer }: SupportTurn, { intent, random }: TurnFacts) {
  const [first] = uses
  const flaky: Step[] =
    first !== undefined && random.chance(RETRY_RATE)
      ? [
          ...talk.uses({ ...first, error: 'HTTP 502 from the gateway' }),
          note('warn', 'retry', { tool: first.tool, attempt: 2, reason: 'HTTP 502 from the gateway' }, 400),
        ]
      : []
  const lookups =
    uses.length === 0
      ? []
      : [
          task('look things up', [...flaky, ...talk.uses(...uses)], {
            input: { tools: uses.map(({ tool }) => tool) },
            output: { found: true },
          }),
        ]
  const confidence = random.int(71, 99) / 100
  const steps: Step[] = [
    task('classify', [note('debug', 'decision', { intent, confidence }, random.latencyMs(30))], {
      output: { intent, confidence },
    }),
    task(
      'answer',
      [...lookups, task('write the reply', [talk.says(answer)], { output: { characters: answer.length } })],
      { input: { intent } },
    ),
  ]
  return { steps, outcome: { status: 'completed', output: { message: answer } } } as const
}

function failedTurn(talk: Talk, random: Random) {
  const { tool, error, exactMs, message, detail } = random.pick(failures)
  const call = { tool, args: { reason: 'customer request' }, result: {}, typicalMs: 1_900, exactMs, error }
  const again = note('warn', 'retry', { tool, attempt: 2, reason: error }, 800)
  const lookup = task('look things up', [...talk.uses(call), again, ...talk.uses(call)], { error: message })
  const steps: Step[] = [
    task('answer', [lookup, note('error', 'agent.gave_up', { message, ...detail })], { error: message }),
    task('write the reply', [], { isSkipped: true }),
  ]
  return { steps, outcome: { status: 'failed', message, detail } } as const
}
