import type { Random } from '../random.ts'
import { llm, type Model, type Profile, type RunPlan, type Step, type TaskPlan } from './plan.ts'

const MODEL: Model = { provider: 'openai', name: 'gpt-5-mini', inputPrice: 0.25, outputPrice: 2, typicalMs: 700 }

const REQUESTS = [
  { intent: 'refund', message: 'The espresso machine arrived with a cracked water tank. I would like my money back.' },
  { intent: 'refund', message: 'I was charged twice for the same order, please return one of the payments.' },
  { intent: 'delivery', message: 'My parcel has been “out for delivery” since Monday. Where is it?' },
  { intent: 'delivery', message: 'Können Sie die Lieferadresse noch ändern? Ich bin umgezogen.' },
  { intent: 'account', message: 'I cannot log in since I changed my phone, the code never comes.' },
  { intent: 'cancellation', message: 'Please cancel my subscription before it renews on Friday.' },
] as const

const FAILURES = [
  { message: 'payment provider refused the refund', detail: { reason: 'card_closed', provider_status: 422 } },
  { message: 'the order could not be found', detail: { reason: 'unknown_order', searched: ['orders', 'archive'] } },
  { message: 'handed over to a person', detail: { reason: 'policy', rule: 'refund_above_limit', limit_usd: 500 } },
]

/** Answers customers of a shop: looks the order up, decides, acts, replies. */
export const support: Profile = {
  name: 'support',
  description: 'Answers customers of a shop and settles refunds, deliveries and accounts.',
  choosesRunIds: true,
  plan(random): RunPlan {
    const { intent, message } = random.pick(REQUESTS)
    const order = `SO-${random.int(100_000, 999_999)}`
    const tier = random.pick(['free', 'plus', 'plus', 'enterprise'])
    const fails = random.chance(0.07)
    return {
      triggerType: 'webhook',
      input: {
        message,
        customer_id: `cus_${random.int(1_000, 9_999)}`,
        order_id: order,
        channel: random.pick(['chat', 'email']),
      },
      externalRunId: `ticket-${random.int(10_000, 99_999)}`,
      tags: ['support', `tier:${tier}`, `intent:${intent}`],
      metadata: { sdk: 'support-bot/2.4.1', region: random.pick(['eu-west', 'us-east']) },
      tasks: [understand(random, intent), act(random, intent, order, fails), reply(random, tier)],
      output: { resolution: intent === 'refund' ? 'refunded' : 'answered', satisfaction: random.int(3, 5) },
    }
  },
}

function understand(random: Random, intent: string): TaskPlan {
  return {
    name: 'understand the request',
    input: { policy_version: 12 },
    steps: [
      llm(random, MODEL, 'stop'),
      {
        kind: 'note',
        level: 'debug',
        type: 'agent.decision',
        payload: { intent, confidence: random.int(71, 99) / 100 },
      },
    ],
    output: { intent },
  }
}

function act(random: Random, intent: string, order: string, fails: boolean): TaskPlan {
  const steps: Step[] = [
    llm(random, MODEL, 'tool_calls', 2),
    {
      kind: 'tool',
      ms: random.latencyMs(120),
      tool: 'get_order',
      input: { order_id: order },
      output: {
        order_id: order,
        total_usd: random.int(900, 60_000) / 100,
        status: random.pick(['delivered', 'shipped']),
      },
    },
  ]
  if (random.chance(0.15)) {
    const input = { order_id: order }
    steps.push({ kind: 'tool', ms: random.latencyMs(900), tool: 'track_parcel', input, output: {}, error: 'timeout' })
    const payload = { tool: 'track_parcel', attempt: 2 }
    steps.push({ kind: 'note', level: 'warn', type: 'agent.retry', payload })
  }
  if (intent === 'refund') {
    const input = { order_id: order, reason: 'customer_request' }
    steps.push({ kind: 'tool', ms: random.latencyMs(350), tool: 'issue_refund', input, output: { ok: !fails } })
  }
  const failure = fails ? random.pick(FAILURES) : undefined
  return {
    name: 'settle it',
    input: { order_id: order },
    steps,
    output: { settled: true },
    ...(failure && { failure }),
  }
}

function reply(random: Random, tier: string): TaskPlan {
  return {
    name: 'reply to the customer',
    input: { tone: tier === 'enterprise' ? 'formal' : 'friendly' },
    steps: [
      llm(random, MODEL, 'stop', 3),
      {
        kind: 'tool',
        ms: random.latencyMs(90),
        tool: 'send_message',
        input: { template: null },
        output: { message_id: `msg_${random.int(1e6, 9e6)}` },
      },
    ],
    output: { sent: true },
  }
}
