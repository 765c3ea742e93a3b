import { logs, SpanStatusCode, trace } from '@opentelemetry/api'
import { NodeSDK } from '@opentelemetry/sdk-node'

/**
 * Programs as users have them, one for each way of sending: `bun test/support/otel-program.ts <name>`. They know nothing of
 * the service but the variables `OTEL_EXPORTER_OTLP_*`.
 */
const PROGRAMS: Record<string, () => Promise<void>> = { manual, vercel, openinference, traceloop }

const sdk = new NodeSDK()
sdk.start()
await PROGRAMS[process.argv[2] ?? '']!()
await sdk.shutdown()

/** Spans and a log record by hand, with the names of OpenTelemetry's conventions. */
async function manual(): Promise<void> {
  const tracer = trace.getTracer('program')
  await tracer.startActiveSpan('invoke_agent planner', async (root) => {
    root.setAttributes({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'planner',
      'gen_ai.input.messages': '[{"role":"user","content":"Where is my order?"}]',
    })
    tracer.startActiveSpan('chat gpt-5-mini', (model) => {
      model.setAttributes({
        'gen_ai.operation.name': 'chat',
        'gen_ai.request.model': 'gpt-5-mini',
        'gen_ai.usage.input_tokens': 120,
        'gen_ai.usage.output_tokens': 30,
      })
      logs.getLogger('program').emit({ severityNumber: 9, body: 'asked the model', attributes: { attempt: 1 } })
      model.end()
    })
    tracer.startActiveSpan('execute_tool get_order', (tool) => {
      tool.setAttributes({ 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'get_order' })
      tool.recordException(new Error('no such order'))
      tool.setStatus({ code: SpanStatusCode.ERROR, message: 'no such order' })
      tool.end()
    })
    root.end()
  })
}

/** The Vercel AI SDK with a scripted model, which calls a tool and then answers. */
async function vercel(): Promise<void> {
  const { generateText, registerTelemetry, isStepCount, tool, jsonSchema } = await import('ai')
  const { MockLanguageModelV3 } = await import('ai/test')
  const { OpenTelemetry } = await import('@ai-sdk/otel')
  registerTelemetry(new OpenTelemetry())
  const usage = {
    inputTokens: { total: 50, noCache: 50, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 7, text: 7, reasoning: 0 },
  }
  const called = { type: 'tool-call' as const, toolCallId: 'call-1', toolName: 'weather', input: '{"city":"Rome"}' }
  const model = new MockLanguageModelV3({
    provider: 'scripted',
    modelId: 'm-1',
    doGenerate: [
      { content: [called], finishReason: { unified: 'tool-calls', raw: undefined }, usage, warnings: [] },
      {
        content: [{ type: 'text', text: 'It is sunny.' }],
        finishReason: { unified: 'stop', raw: undefined },
        usage,
        warnings: [],
      },
    ],
  })
  const weather = tool({
    description: 'The weather of a city',
    inputSchema: jsonSchema<{ city: string }>({ type: 'object', properties: { city: { type: 'string' } } }),
    execute: async () => ({ sky: 'sunny' }),
  })
  await generateText({ model, prompt: 'What is the weather in Rome?', tools: { weather }, stopWhen: isStepCount(3) })
}

/** `openai`, instrumented by OpenInference. */
async function openinference(): Promise<void> {
  const { OpenAIInstrumentation } = await import('@arizeai/openinference-instrumentation-openai')
  const OpenAI = await import('openai')
  const instrumentation = new OpenAIInstrumentation()
  instrumentation.manuallyInstrument(OpenAI.default as never)
  await complete(new OpenAI.default())
}

/** `openai`, instrumented by Traceloop (OpenLLMetry). */
async function traceloop(): Promise<void> {
  const { OpenAIInstrumentation } = await import('@traceloop/instrumentation-openai')
  const OpenAI = await import('openai')
  const instrumentation = new OpenAIInstrumentation()
  instrumentation.manuallyInstrument(OpenAI.default)
  await complete(new OpenAI.default())
}

async function complete(client: import('openai').OpenAI): Promise<void> {
  await client.chat.completions.create({ model: 'gpt-5-mini', messages: [{ role: 'user', content: 'Say hello.' }] })
}
