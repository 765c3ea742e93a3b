import type { Random } from '../../src/cli/demo/random.ts'
import { createActions, type Model, note, type Profile, type Step, type TaskPlan } from './query-plan.ts'

const GPT: Model = { provider: 'openai', name: 'gpt-5-mini', typicalMs: 700 }
const CLAUDE: Model = { provider: 'anthropic', name: 'claude-sonnet-4-5', typicalMs: 1_400 }
const GEMINI: Model = { provider: 'gcp.gemini', name: 'gemini-2.5-pro', typicalMs: 1_100 }

const REQUESTS = [
  { intent: 'refund', message: 'The espresso machine arrived with a cracked water tank. I would like my money back.' },
  { intent: 'refund', message: 'I was charged twice for the same order, please return one of the payments.' },
  { intent: 'delivery', message: 'My parcel has been “out for delivery” since Monday. Where is it?' },
  { intent: 'delivery', message: 'Können Sie die Lieferadresse noch ändern? Ich bin umgezogen.' },
  { intent: 'account', message: 'I cannot log in since I changed my phone, the code never comes.' },
  { intent: 'cancellation', message: 'Please cancel my subscription before it renews on Friday.' },
]

const FAILURES = [
  { message: 'payment provider refused the refund', detail: { reason: 'card_closed', provider_status: 422 } },
  { message: 'the order could not be found', detail: { reason: 'unknown_order', searched: ['orders', 'archive'] } },
  { message: 'handed over to a person', detail: { reason: 'policy', rule: 'refund_above_limit', limit_usd: 500 } },
]

/** Answers customers of a shop: looks the order up, decides, acts, replies. */
const support: Profile = {
  name: 'support',
  description: 'Answers customers of a shop and settles refunds, deliveries and accounts.',
  plan(random) {
    const { llm, tool } = createActions(random, GPT)
    const { intent, message } = random.pick(REQUESTS)
    const order = { order_id: `SO-${random.int(100_000, 999_999)}` }
    const tier = random.pick(['free', 'plus', 'plus', 'enterprise'])
    const customer = { customer_id: `cus_${random.int(1_000, 9_999)}`, channel: random.pick(['chat', 'email']) }
    const failure = random.chance(0.07) ? random.pick(FAILURES) : undefined
    const decision = { intent, confidence: random.int(71, 99) / 100 }
    const found = { ...order, total_usd: random.int(900, 60_000) / 100, status: random.pick(['delivered', 'shipped']) }
    const settling: Step[] = [llm('tool_calls', 2), tool('get_order', 120, order, found)]
    if (random.chance(0.15))
      settling.push(
        tool('track_parcel', 900, order, {}, 'timeout'),
        note('warn', 'agent.retry', { tool: 'track_parcel', attempt: 2 }),
      )
    if (intent === 'refund')
      settling.push(tool('issue_refund', 350, { ...order, reason: 'customer_request' }, { ok: failure === undefined }))
    const sent = { message_id: `msg_${random.int(1e6, 9e6)}` }
    return {
      triggerType: 'webhook',
      input: { message, ...customer, ...order },
      externalRunId: `ticket-${random.int(10_000, 99_999)}`,
      tags: ['support', `tier:${tier}`, `intent:${intent}`],
      metadata: { sdk: 'support-bot/2.4.1', region: random.pick(['eu-west', 'us-east']) },
      tasks: [
        {
          name: 'understand the request',
          input: { policy_version: 12 },
          steps: [llm('stop'), note('debug', 'agent.decision', decision)],
          output: { intent },
        },
        { name: 'settle it', input: order, steps: settling, output: { settled: true }, failure },
        {
          name: 'reply to the customer',
          input: { tone: tier === 'enterprise' ? 'formal' : 'friendly' },
          steps: [llm('stop', 3), tool('send_message', 90, { template: null }, sent)],
          output: { sent: true },
        },
      ],
      output: { resolution: intent === 'refund' ? 'refunded' : 'answered', satisfaction: random.int(3, 5) },
    }
  },
}

const ISSUES = [
  { title: 'Pagination skips an item when two rows share a timestamp', files: ['src/list.ts', 'test/list.test.ts'] },
  { title: 'Upload fails for names with an emoji in them 🚀', files: ['src/upload.ts'] },
  { title: 'Race between two workers that claim the same job', files: ['src/queue/claim.ts', 'src/queue/lease.ts'] },
  { title: 'Dark mode flickers on first load', files: ['web/theme.css', 'web/theme.ts'] },
]

const REPOSITORIES = ['acme/storefront', 'acme/billing', 'acme/mobile', 'acme/infra']

/** Fixes issues of a repository: reads, edits, runs the tests until they pass or it gives up. */
const coding: Profile = {
  name: 'coding',
  description: 'Takes issues of a repository, edits the code and runs its tests.',
  plan(random) {
    const { llm, tool } = createActions(random, CLAUDE)
    const { title, files } = random.pick(ISSUES)
    const repository = random.pick(REPOSITORIES)
    const issue = random.int(100, 4_000)
    const reads = files.map((path) => tool('read_file', 15, { path }, { lines: random.int(40, 900) }))
    const research: Step[] = random.chance(0.2) ? [{ to: 'research', seed: random.int(0, 2 ** 32 - 1) }] : []
    const edits = files.flatMap((path) => {
      const changed = { added: random.int(2, 60), removed: random.int(0, 30) }
      return [llm('tool_calls', 5), tool('edit_file', 20, { path, hunks: random.int(1, 6) }, changed)]
    })
    return {
      triggerType: random.chance(0.7) ? 'webhook' : 'manual',
      input: { repository, issue, title },
      externalRunId: `${repository}#${issue}`,
      tags: ['coding', `repo:${repository}`],
      metadata: { sdk: 'code-agent/0.9.0', commit: random.int(1e9, 9e9).toString(16) },
      tasks: [
        {
          name: 'understand the issue',
          input: { files },
          steps: [llm('tool_calls'), ...reads, ...research, llm('stop', 4)],
          output: { plan: `${files.length} files to change` },
        },
        { name: 'edit the code', input: { files }, steps: edits, output: { edited: files.length } },
        runTests(random),
        { name: 'update the changelog', input: {}, steps: [], output: {}, isSkipped: true },
      ],
      output: { pull_request: random.int(100, 4_000), files_changed: files.length, tests: 'passed' },
    }
  },
}

const STILL_FAILING = { message: 'the tests still fail', detail: { reason: 'tests_failed', attempts: 2 } }

function runTests(random: Random): TaskPlan {
  const { llm, tool } = createActions(random, CLAUDE)
  const input = { command: 'bun test' }
  const run = (failed: number) => {
    const error = failed > 0 ? `${failed} tests failed` : undefined
    return tool('run_tests', 1_200, input, { passed: random.int(80, 400), failed }, error)
  }
  const fails = random.chance(0.12)
  const firstTry = fails || random.chance(0.3) ? [run(random.int(1, 4)), llm('tool_calls', 6)] : []
  return {
    name: 'run the tests',
    input,
    steps: [...firstTry, run(fails ? random.int(1, 4) : 0)],
    output: { green: true },
    failure: fails ? STILL_FAILING : undefined,
  }
}

const QUESTIONS = [
  'Which EU countries changed their VAT threshold for small businesses this year?',
  'Compare the warranty terms of the five best-selling heat pumps.',
  '量子誤り訂正の最近の進歩を一段落でまとめてください。',
  'What do the last three incident reports have in common?',
  'Find peer-reviewed measurements of LFP battery ageing above 45 °C.',
]

const SITES = ['eur-lex.europa.eu', 'arxiv.org', 'nature.com', 'wiki.internal', 'energy.gov']

/** Answers a question from sources: searches, reads, weighs, writes. */
const research: Profile = {
  name: 'research',
  description: 'Answers questions from sources it searches and reads.',
  plan(random) {
    const { llm, tool } = createActions(random, GEMINI)
    const question = random.pick(QUESTIONS)
    const sources = random.int(2, 5)
    const blocked = { message: 'no source could be read', detail: { reason: 'blocked', tried: sources } }
    const failure = random.chance(0.05) ? blocked : undefined
    const found = { results: random.int(3, 20) }
    const reads = Array.from({ length: sources }, () => {
      const url = `https://${random.pick(SITES)}/${random.int(1_000, 99_999)}`
      const error = random.chance(0.1) ? 'HTTP 403' : undefined
      return tool('fetch_page', 300, { url }, { bytes: random.int(4_000, 400_000) }, error)
    })
    return {
      triggerType: random.pick(['manual', 'scheduled', 'sdk']),
      input: { question, max_sources: sources },
      externalRunId: random.chance(0.5) ? `report-${random.int(1_000, 9_999)}` : undefined,
      tags: ['research', random.chance(0.3) ? 'priority:high' : 'priority:normal'],
      metadata: { sdk: 'deep-research/1.2.0' },
      tasks: [
        {
          name: 'search',
          input: { question },
          steps: [llm('tool_calls'), tool('web_search', 400, { query: question.slice(0, 60) }, found)],
          output: { found: true },
        },
        { name: 'read the sources', input: { sources }, steps: reads, output: { read: sources }, failure },
        {
          name: 'write the answer',
          input: { style: 'brief' },
          steps: [llm('stop', sources * 2), note('info', 'agent.citation', { sources, quotes: random.int(0, 8) })],
          output: { words: random.int(120, 900) },
        },
      ],
      output: { answer: `A summary of ${sources} sources.`, confidence: random.int(55, 98) / 100 },
    }
  },
}

/** The kinds of agents, in the order in which a fleet has them. */
export const PROFILES = [support, coding, research]
