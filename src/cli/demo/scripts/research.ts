import type { Random } from '../random.ts'
import { llm, type Model, type Profile, type RunPlan, type TaskPlan } from './plan.ts'

const MODEL: Model = {
  provider: 'gcp.gemini',
  name: 'gemini-2.5-pro',
  inputPrice: 1.25,
  outputPrice: 10,
  typicalMs: 1_100,
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
export const research: Profile = {
  name: 'research',
  description: 'Answers questions from sources it searches and reads.',
  choosesRunIds: true,
  plan(random): RunPlan {
    const question = random.pick(QUESTIONS)
    const sources = random.int(2, 5)
    return {
      triggerType: random.pick(['manual', 'scheduled', 'sdk']),
      input: { question, max_sources: sources },
      externalRunId: random.chance(0.5) ? `report-${random.int(1_000, 9_999)}` : undefined,
      tags: ['research', random.chance(0.3) ? 'priority:high' : 'priority:normal'],
      metadata: { sdk: 'deep-research/1.2.0' },
      tasks: [search(random, question), readSources(random, sources), write(random, sources)],
      output: { answer: `A summary of ${sources} sources.`, confidence: random.int(55, 98) / 100 },
    }
  },
}

function search(random: Random, question: string): TaskPlan {
  return {
    name: 'search',
    input: { question },
    steps: [
      llm(random, MODEL, 'tool_calls'),
      {
        kind: 'tool',
        ms: random.latencyMs(400),
        tool: 'web_search',
        input: { query: question.slice(0, 60) },
        output: { results: random.int(3, 20) },
      },
    ],
    output: { found: true },
  }
}

function readSources(random: Random, sources: number): TaskPlan {
  const fails = random.chance(0.05)
  return {
    name: 'read the sources',
    input: { sources },
    steps: Array.from({ length: sources }, () => ({
      kind: 'tool',
      ms: random.latencyMs(300),
      tool: 'fetch_page',
      input: { url: `https://${random.pick(SITES)}/${random.int(1_000, 99_999)}` },
      output: { bytes: random.int(4_000, 400_000) },
      ...(random.chance(0.1) && { error: 'HTTP 403' }),
    })),
    output: { read: sources },
    ...(fails && { failure: { message: 'no source could be read', detail: { reason: 'blocked', tried: sources } } }),
  }
}

function write(random: Random, sources: number): TaskPlan {
  return {
    name: 'write the answer',
    input: { style: 'brief' },
    steps: [
      llm(random, MODEL, 'stop', sources * 2),
      { kind: 'note', level: 'info', type: 'agent.citation', payload: { sources, quotes: random.int(0, 8) } },
    ],
    output: { words: random.int(120, 900) },
  }
}
