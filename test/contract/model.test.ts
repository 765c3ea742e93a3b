import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type ModelAnswer, ModelFailure, type ModelRequest } from '../../src/outbound/model/model.ts'
import { createOpenAiModel } from '../../src/outbound/model/openai.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/service.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

/** Third-party servers from npm that claim to be compatible with OpenAI's API. */

const ROOT = join(import.meta.dir, '..', '..')
const REQUEST: ModelRequest = {
  model: 'gpt-4o',
  messages: [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'What is the weather in Oslo and in Rome?' },
  ],
  tools: [],
  temperature: 0.2,
  maxOutputTokens: 100,
  outputSchema: null,
}
const WEATHER = {
  name: 'weather',
  description: 'The weather of a city',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}

/** A Bun process that ends with the tests. */
function run(args: readonly string[], env: Record<string, string>, cwd: string) {
  const child = Bun.spawn([process.execPath, ...args], {
    cwd,
    env: { PATH: process.env.PATH ?? '', ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'ignore',
  })
  atEnd(async () => {
    child.kill('SIGKILL')
    await child.exited
  })
  return child
}

async function ask(baseUrl: string, more: Partial<ModelRequest> = {}): Promise<ModelAnswer> {
  const model = createOpenAiModel({ apiKey: 'sk-not-a-key', baseUrl, backoffMs: 5 })
  return model.ask({ ...REQUEST, ...more }, new AbortController().signal)
}

async function streamed(baseUrl: string, more: Partial<ModelRequest> = {}) {
  const deltas: string[] = []
  const answer = await ask(baseUrl, {
    ...more,
    onText: (delta) => deltas.push(delta),
    onRestart: () => deltas.push('|'),
  })
  return { answer, deltas }
}

describe('@dwmkerr/mock-llm', async () => {
  const port = freePort()
  const main = join(ROOT, 'node_modules/@dwmkerr/mock-llm/dist/main.js')
  run([main], { HOST: '127.0.0.1', PORT: `${port}` }, await temporaryDirectory())
  const root = `http://127.0.0.1:${port}`
  await eventually(async () => (await fetch(`${root}/health`)).ok)
  const url = `${root}/v1`

  /** Sets the rules of the server; the last match wins. Restarts the counting for sequences. */
  async function configure(rules: readonly object[], streaming = { chunkSize: 8, chunkIntervalMs: 1 }): Promise<void> {
    await fetch(`${root}/config`, { method: 'DELETE' })
    const answer = await fetch(`${root}/config`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ rules: rules.map((rule) => ({ path: '/v1/chat/completions', ...rule })), streaming }),
    })
    expect(answer.status).toBe(200)
  }
  const says = (message: object, more: object = {}) => ({
    status: 200,
    content: JSON.stringify({
      id: 'chatcmpl-1',
      object: 'chat.completion',
      model: 'mock-1',
      choices: [{ message: { role: 'assistant', ...message }, finish_reason: 'stop' }],
      ...more,
    }),
  })

  test('echoes an answer', async () => {
    await fetch(`${root}/config`, { method: 'DELETE' })
    const { content, finishReason, model } = await ask(url)
    expect(content).toBe('What is the weather in Oslo and in Rome?')
    expect({ finishReason, model }).toEqual({ finishReason: 'stop', model: 'gpt-4o' })
  })

  test('streams an answer', async () => {
    await configure([{ response: says({ content: 'Rain in Oslo, sun in Rome' }) }])
    const { answer, deltas } = await streamed(url)
    expect(deltas).toEqual(['Rain in ', 'Oslo, su', 'n in Rom', 'e'])
    expect(answer).toMatchObject({
      content: 'Rain in Oslo, sun in Rome',
      finishReason: 'stop',
      responseId: 'chatcmpl-1',
    })
  })

  test('calls tools and continues with their results', async () => {
    const tool_calls = ['Oslo', 'Rome'].map((city) => ({
      function: { name: 'weather', arguments: JSON.stringify({ city }) },
    }))
    const details = { prompt_tokens_details: { cached_tokens: 5 }, completion_tokens_details: { reasoning_tokens: 2 } }
    const usage = { prompt_tokens: 9, completion_tokens: 4, ...details }
    await configure([
      {
        sequence: 0,
        response: says({ content: null, tool_calls }, { usage }),
      },
      { sequence: 1, match: 'body.messages[-1].role == `tool`', response: says({ content: 'Wet and dry' }) },
    ])
    const first = await ask(url, { tools: [WEATHER] })
    expect(first.toolCalls.map(({ arguments: given }) => given)).toEqual(['{"city":"Oslo"}', '{"city":"Rome"}'])
    expect(first.usage).toEqual({ inputTokens: 9, outputTokens: 4, cacheReadTokens: 5, reasoningTokens: 2 })
    const messages: ModelRequest['messages'] = [
      ...REQUEST.messages,
      { role: 'assistant', content: first.content, toolCalls: first.toolCalls },
      ...first.toolCalls.map(({ id }) => ({ role: 'tool' as const, toolCallId: id, content: '"rain"' })),
    ]
    expect((await ask(url, { tools: [WEATHER], messages })).content).toBe('Wet and dry')
  })

  test('fails and recovers', async () => {
    const error = {
      error: { message: 'Incorrect API key provided.', type: 'invalid_request_error', code: 'invalid_api_key' },
    }
    await configure([{ response: { status: 401, content: JSON.stringify(error) } }])
    for (const failing of [ask(url), streamed(url)]) {
      const thrown = await failing.catch((each: unknown) => each)
      expect(thrown).toBeInstanceOf(ModelFailure)
      expect(thrown).toMatchObject({ provider: { code: 'invalid_api_key' } })
      expect((thrown as Error).message).toContain('Incorrect API key provided.')
    }
    const busy = { status: 429, content: '{"error": {"message": "Slow down"}}' }
    await configure([
      { sequence: 0, response: busy },
      { sequence: 1, response: says({ content: 'Now' }) },
    ])
    expect((await ask(url)).content).toBe('Now')
  })
})

describe('openai-api-mock', async () => {
  // It mocks `fetch` within a process: a process that forwards requests to it makes it a server.
  const program = `
    import { mockOpenAIResponse } from 'openai-api-mock'
    mockOpenAIResponse(true, { seed: 7, useFixedResponses: true })
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      async fetch(request) {
        const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: await request.text() }
        return fetch('https://api.openai.com' + new URL(request.url).pathname, init)
      },
    })
    process.stdout.write(server.port + '\\n')
  `
  const child = run(['-e', program], {}, ROOT)
  const { value } = await child.stdout.getReader().read()
  const url = `http://127.0.0.1:${Number(new TextDecoder().decode(value))}/v1`

  test('answers', async () => {
    expect(await ask(url)).toMatchObject({
      content: 'This is a consistent test response.',
      finishReason: 'stop',
      usage: { inputTokens: 20, outputTokens: 10 },
    })
  })

  test('streams an answer', async () => {
    const { answer, deltas } = await streamed(url)
    expect(deltas.length).toBeGreaterThan(1)
    expect(deltas).not.toContain('|')
    expect(answer.content).toBe(deltas.join(''))
  })

  test('calls a tool', async () => {
    const { toolCalls, finishReason, content } = await ask(url, { tools: [WEATHER] })
    expect(toolCalls).toEqual([
      { id: 'call_test123456789', name: 'test_function', arguments: '{"param1": "test_value", "param2": 42}' },
    ])
    expect({ finishReason, content }).toEqual({ finishReason: 'tool_calls', content: null })
  })

  test('passes on the message about a malformed request', async () => {
    await expect(ask(url, { model: '' })).rejects.toThrow(
      'the model provider answered 400: Invalid request. Missing required fields.',
    )
  })
})
