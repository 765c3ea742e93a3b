import { beforeAll, expect, test } from 'bun:test'
import { eventually } from '../support/eventually.ts'
import { newReporter, newTenant, type Reporter, type Tenant } from '../support/feeds.ts'
import { at, event, sendBatch } from '../support/langfuse.ts'
import { ingest, spanItem, traceId, traceItem } from '../support/openai-traces.ts'
import { attributesOf, randomHex, sendExport, span, tracesOf } from '../support/otlp.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { usageRecord } from '../support/usage.ts'

/** What model calls report, as providers and SDKs name it, and what they cost: docs/usage.md. */

let service: TestService
let tenant: Tenant
let agent: Reporter

beforeAll(async () => {
  service = await startTestService()
  tenant = await newTenant(service)
  agent = await newReporter(tenant.api)
})

type Json = Record<string, unknown>

/** Sends the calls of one run; returns what finds it. */
type Door = (calls: readonly Json[]) => Promise<string>

const events: Door = async (calls) => {
  const runId = await agent.start()
  // At night, some prices are lower.
  const occurred_at = '2026-11-20T12:00:00Z'
  await agent.events(
    runId,
    calls.map((payload) => ({ type: 'llm.call', occurred_at, payload })),
  )
  // SQL shows the usage of live runs some seconds later.
  await agent.end(runId)
  return `/api/v1/runs/${runId}`
}

const otlp: Door = async (calls) => {
  const id = randomHex(16)
  const spans = calls.map((attributes) =>
    span({ traceId: id, name: 'llm', attributes: attributesOf(attributes as Record<string, string | number>) }),
  )
  expect((await sendExport(tenant, 'traces', tracesOf(spans))).status).toBe(200)
  return `/api/v1/runs?external_run_id=${id}`
}

const langfuse: Door = async (calls) => {
  const id = crypto.randomUUID()
  const times = { startTime: at(0), endTime: at(5) }
  const batch = calls.map((body) =>
    event('generation-create', { id: crypto.randomUUID(), traceId: id, name: 'llm', ...times, ...body }),
  )
  expect((await sendBatch(tenant, batch)).status).toBe(207)
  return `/api/v1/runs?external_run_id=${id}`
}

const openAiAgents: Door = async (calls) => {
  const id = traceId()
  const data = [traceItem(id), ...calls.map((call) => spanItem(id, { type: 'generation', ...call }))]
  expect((await ingest(tenant, { data })).status).toBe(204)
  return `/api/v1/runs?external_run_id=${id}`
}

const twice = (call: Json) => [call, call]

interface Dialect {
  readonly name: string
  readonly door: Door
  readonly calls: readonly Json[]
  readonly input: number
  readonly output: number
  readonly read?: number
  readonly written?: number
  readonly reasoning?: number
  /** Tokens times USD per million of them. */
  readonly sum: number
}

const DIALECTS: readonly Dialect[] = [
  {
    name: 'OpenAI, chat completions',
    door: events,
    calls: [
      {
        model: 'gpt-5-mini',
        usage: {
          ...{ prompt_tokens: 50_000, completion_tokens: 300, total_tokens: 50_300 },
          prompt_tokens_details: { cached_tokens: 45_000, audio_tokens: 0 },
          completion_tokens_details: { reasoning_tokens: 128, audio_tokens: 0, rejected_prediction_tokens: 0 },
        },
      },
    ],
    ...{ input: 50_000, output: 300, read: 45_000, reasoning: 128 },
    sum: 5_000 * 0.25 + 45_000 * 0.025 + 300 * 2,
  },
  {
    name: 'OpenAI, responses',
    door: events,
    calls: [
      {
        model: 'gpt-5-2025-08-07',
        usage: {
          ...{ input_tokens: 12_000, input_tokens_details: { cached_tokens: 8_192 } },
          ...{ output_tokens: 900, output_tokens_details: { reasoning_tokens: 640 }, total_tokens: 12_900 },
        },
      },
    ],
    ...{ input: 12_000, output: 900, read: 8_192, reasoning: 640 },
    sum: 3_808 * 1.25 + 8_192 * 0.125 + 900 * 10,
  },
  {
    name: 'OpenAI, sound',
    door: events,
    calls: [
      {
        model: 'gpt-4o-realtime-preview',
        usage: {
          ...{ prompt_tokens: 1_000, prompt_tokens_details: { audio_tokens: 600, cached_tokens: 0 } },
          ...{ completion_tokens: 500, completion_tokens_details: { audio_tokens: 400 }, total_tokens: 1_500 },
        },
      },
    ],
    ...{ input: 1_000, output: 500 },
    sum: 400 * 5 + 600 * 40 + 100 * 20 + 400 * 80,
  },
  {
    name: 'Anthropic, most of it from the cache, some kept for an hour',
    door: events,
    calls: [
      {
        model: 'claude-sonnet-4-5-20250929',
        usage: {
          ...{ input_tokens: 8, cache_creation_input_tokens: 4_000, cache_read_input_tokens: 50_000 },
          cache_creation: { ephemeral_5m_input_tokens: 1_000, ephemeral_1h_input_tokens: 3_000 },
          ...{ output_tokens: 300, service_tier: 'standard' },
        },
      },
    ],
    ...{ input: 54_008, output: 300, read: 50_000, written: 4_000 },
    sum: 8 * 3 + 50_000 * 0.3 + 1_000 * 3.75 + 3_000 * 6 + 300 * 15,
  },
  {
    name: 'Anthropic, with less from the cache than not, which only the names tell',
    door: events,
    calls: [
      {
        model: 'claude-haiku-4-5',
        usage: {
          input_tokens: 5_000,
          cache_read_input_tokens: 1_200,
          cache_creation_input_tokens: 0,
          output_tokens: 50,
        },
      },
    ],
    ...{ input: 6_200, output: 50, read: 1_200 },
    sum: 5_000 * 1 + 1_200 * 0.1 + 50 * 5,
  },
  {
    name: 'Gemini',
    door: events,
    calls: [
      {
        modelVersion: 'gemini-2.5-flash',
        usageMetadata: {
          ...{ promptTokenCount: 10_000, cachedContentTokenCount: 8_000, candidatesTokenCount: 700 },
          ...{ thoughtsTokenCount: 500, totalTokenCount: 11_200 },
        },
      },
    ],
    ...{ input: 10_000, output: 1_200, read: 8_000, reasoning: 500 },
    sum: 2_000 * 0.3 + 8_000 * 0.03 + 1_200 * 2.5,
  },
  {
    name: 'DeepSeek',
    door: events,
    calls: [
      {
        model: 'deepseek-chat',
        usage: {
          ...{ prompt_tokens: 1_000, prompt_cache_hit_tokens: 640, prompt_cache_miss_tokens: 360 },
          ...{ completion_tokens: 100, total_tokens: 1_100 },
        },
      },
    ],
    ...{ input: 1_000, output: 100, read: 640 },
    sum: 360 * 0.27 + 640 * 0.07 + 100 * 1.1,
  },
  {
    name: 'xAI, whose completion excludes the reasoning',
    door: events,
    calls: [
      {
        model: 'grok-4-1-fast-reasoning',
        usage: {
          ...{ prompt_tokens: 300, completion_tokens: 450, total_tokens: 1_150 },
          prompt_tokens_details: { text_tokens: 300, audio_tokens: 0, cached_tokens: 256 },
          completion_tokens_details: { reasoning_tokens: 400 },
        },
      },
    ],
    ...{ input: 300, output: 850, read: 256, reasoning: 400 },
    sum: 44 * 0.2 + 256 * 0.05 + 850 * 0.5,
  },
  {
    name: 'Groq',
    door: events,
    calls: [
      {
        model: 'groq/llama-3.3-70b-versatile',
        usage: { queue_time: 0.1, prompt_tokens: 100, prompt_time: 0.01, completion_tokens: 20, total_tokens: 120 },
      },
    ],
    ...{ input: 100, output: 20 },
    sum: 100 * 0.59 + 20 * 0.79,
  },
  {
    name: 'Mistral',
    door: events,
    calls: [
      {
        model: 'mistral-large-latest',
        usage: { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150, prompt_audio_seconds: null },
      },
    ],
    ...{ input: 100, output: 50 },
    sum: 100 * 2 + 50 * 6,
  },
  {
    name: 'Bedrock, Converse',
    door: events,
    calls: [
      {
        modelId: 'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
        usage: {
          ...{ inputTokens: 4_000, outputTokens: 80, totalTokens: 7_080 },
          ...{ cacheReadInputTokens: 2_000, cacheWriteInputTokens: 1_000 },
        },
      },
    ],
    ...{ input: 7_000, output: 80, read: 2_000, written: 1_000 },
    sum: 4_000 * 3.3 + 2_000 * 0.33 + 1_000 * 4.125 + 80 * 16.5,
  },
  {
    name: 'Claude Code 2.1.331, traces: the input includes the cache',
    door: otlp,
    calls: twice({
      'gen_ai.request.model': 'claude-opus-5-5',
      'gen_ai.usage.input_tokens': 52_004,
      'gen_ai.usage.output_tokens': 300,
      'gen_ai.usage.cache_read.input_tokens': 50_000,
      'gen_ai.usage.cache_creation.input_tokens': 2_000,
    }),
    ...{ input: 104_008, output: 600, read: 100_000, written: 4_000 },
    // It prints $0.0520.
    sum: 8 * 4 + 100_000 * 0.2 + 4_000 * 5 + 600 * 20,
  },
  {
    name: 'Claude Code 2.1.197, traces: the input excludes the cache',
    door: otlp,
    calls: twice({
      ...{ 'gen_ai.request.model': 'claude-opus-4-5', model: 'claude-opus-4-5', input_tokens: 4, output_tokens: 300 },
      ...{ cache_read_tokens: 50_000, cache_creation_tokens: 2_000 },
    }),
    ...{ input: 104_008, output: 600, read: 100_000, written: 4_000 },
    // It prints $0.0900.
    sum: 8 * 5 + 100_000 * 0.5 + 4_000 * 6.25 + 600 * 25,
  },
  {
    name: 'Strands at Bedrock, whose total proves that the input excludes the cache',
    door: otlp,
    calls: [
      {
        'gen_ai.request.model': 'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
        ...{ 'gen_ai.usage.input_tokens': 4_000, 'gen_ai.usage.output_tokens': 80 },
        ...{ 'gen_ai.usage.cache_read_input_tokens': 2_000, 'gen_ai.usage.cache_write_input_tokens': 0 },
        'gen_ai.usage.total_tokens': 6_080,
      },
    ],
    ...{ input: 6_000, output: 80, read: 2_000 },
    sum: 4_000 * 3.3 + 2_000 * 0.33 + 80 * 16.5,
  },
  {
    name: 'Vercel AI SDK',
    door: otlp,
    calls: [
      {
        ...{ 'ai.operationId': 'ai.generateText.doGenerate', 'ai.model.id': 'claude-haiku-4-5' },
        ...{ 'ai.usage.inputTokens': 10_000, 'ai.usage.outputTokens': 200, 'ai.usage.totalTokens': 10_200 },
        ...{ 'ai.usage.cachedInputTokens': 8_000, 'ai.usage.inputTokenDetails.noCacheTokens': 500 },
        'ai.usage.inputTokenDetails.cacheReadTokens': 8_000,
        'ai.usage.inputTokenDetails.cacheWriteTokens': 1_500,
        'ai.usage.reasoningTokens': 20,
      },
    ],
    ...{ input: 10_000, output: 200, read: 8_000, written: 1_500, reasoning: 20 },
    sum: 500 * 1 + 8_000 * 0.1 + 1_500 * 1.25 + 200 * 5,
  },
  {
    name: 'OpenInference',
    door: otlp,
    calls: [
      {
        ...{ 'openinference.span.kind': 'LLM', 'llm.model_name': 'claude-sonnet-4-5' },
        ...{ 'llm.token_count.prompt': 3_000, 'llm.token_count.completion': 100, 'llm.token_count.total': 3_100 },
        'llm.token_count.prompt_details.cache_read': 2_000,
        'llm.token_count.prompt_details.cache_write': 500,
      },
    ],
    ...{ input: 3_000, output: 100, read: 2_000, written: 500 },
    sum: 500 * 3 + 2_000 * 0.3 + 500 * 3.75 + 100 * 15,
  },
  {
    name: 'Langfuse, details of Anthropic',
    door: langfuse,
    calls: [
      {
        model: 'claude-sonnet-4-5',
        usageDetails: {
          ...{ input: 400, output: 60, total: 3_460 },
          ...{ cache_read_input_tokens: 2_000, cache_creation_input_tokens: 1_000 },
        },
      },
    ],
    ...{ input: 3_400, output: 60, read: 2_000, written: 1_000 },
    sum: 400 * 3 + 2_000 * 0.3 + 1_000 * 3.75 + 60 * 15,
  },
  {
    name: 'Langfuse, details by OpenTelemetry',
    door: otlp,
    calls: [
      {
        ...{ 'langfuse.observation.type': 'generation', 'langfuse.observation.model.name': 'gpt-5-mini' },
        'langfuse.observation.usage_details': '{"input":5000,"input_cached_tokens":45000,"output":300}',
      },
    ],
    ...{ input: 50_000, output: 300, read: 45_000 },
    sum: 5_000 * 0.25 + 45_000 * 0.025 + 300 * 2,
  },
  {
    name: 'OpenAI Agents SDK',
    door: openAiAgents,
    calls: [
      {
        model: 'gpt-5-mini',
        usage: {
          ...{ input_tokens: 50_000, output_tokens: 300, total_tokens: 50_300 },
          ...{ input_tokens_details: { cached_tokens: 45_000 }, output_tokens_details: { reasoning_tokens: 64 } },
        },
      },
    ],
    ...{ input: 50_000, output: 300, read: 45_000, reasoning: 64 },
    sum: 5_000 * 0.25 + 45_000 * 0.025 + 300 * 2,
  },
  {
    name: 'a cost that the sender gives',
    door: events,
    calls: [
      {
        model: 'claude-sonnet-4-5',
        usage: { input_tokens: 8, cache_read_input_tokens: 50_000, output_tokens: 300, cost: 0.03 },
      },
    ],
    ...{ input: 50_008, output: 300, read: 50_000 },
    sum: 1_000_000 * 0.03,
  },
]

test.concurrent.each(DIALECTS.map((dialect) => [dialect.name, dialect] as const))('%s', async (_, dialect) => {
  const { door, calls, input, output, read = 0, written = 0, reasoning = 0, sum } = dialect
  const path = await door(calls)
  const run = await eventually(async () => {
    const { data } = await tenant.api('GET', path)
    const found = 'items' in data ? data.items[0] : data
    return found?.usage.total_tokens >= input + output && found
  })
  const parts = { cache_read_tokens: read, cache_write_tokens: written, reasoning_tokens: reasoning }
  expect(run.usage).toEqual(usageRecord(input, output, parts))
  expect(run.cost_usd).toBeCloseTo(sum / 1e6, 9)
  const query = `SELECT input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens FROM runs
    WHERE run_id = {run:UUID}`
  await eventually(async () => {
    const { data } = await tenant.api('POST', '/api/v1/query', { query, params: { run: run.run_id } })
    expect(data.rows).toEqual([{ input_tokens: input, output_tokens: output, ...parts }])
  })
})
