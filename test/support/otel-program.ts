import type { StandardMessageStructure } from '@langchain/core/messages'
import { logs, SpanStatusCode, trace } from '@opentelemetry/api'
import { NodeSDK } from '@opentelemetry/sdk-node'

/**
 * Programs as users have them, one for each way of sending: `bun test/support/otel-program.ts <name>`. They know nothing of
 * the service but the variables `OTEL_EXPORTER_OTLP_*`.
 */
const PROGRAMS: Record<string, () => Promise<void>> = { manual, vercel, openinference, traceloop, langchain }

const name = process.argv[2] ?? ''
if (name.startsWith('logs-')) await onlyLogs(name === 'logs-json')
else {
  const sdk = new NodeSDK()
  sdk.start()
  await PROGRAMS[name]!()
  await sdk.shutdown()
}

/** Log records alone, with an exporter of logs, as coding agents send them. */
async function onlyLogs(isJson: boolean): Promise<void> {
  const { BatchLogRecordProcessor, LoggerProvider } = await import('@opentelemetry/sdk-logs')
  const { OTLPLogExporter } = isJson
    ? await import('@opentelemetry/exporter-logs-otlp-http')
    : await import('@opentelemetry/exporter-logs-otlp-proto')
  const provider = new LoggerProvider({
    processors: [new BatchLogRecordProcessor({ exporter: new OTLPLogExporter() })],
  })
  const logger = provider.getLogger('program')
  const attributes = { 'session.id': name, 'tool.name': 'edit' }
  logger.emit({ eventName: 'tool_result', severityNumber: 17, body: { ok: false }, attributes })
  logger.emit({ eventName: 'api_request', severityNumber: 9, body: 'asked', attributes })
  await provider.shutdown()
}

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

/** A chain of LangChain with a scripted model and a tool that fails, instrumented by OpenInference. */
async function langchain(): Promise<void> {
  const { LangChainInstrumentation } = await import('@arizeai/openinference-instrumentation-langchain')
  new LangChainInstrumentation().manuallyInstrument(await import('@langchain/core/callbacks/manager'))
  const { SimpleChatModel } = await import('@langchain/core/language_models/chat_models')
  const { AIMessage } = await import('@langchain/core/messages')
  const { RunnableLambda } = await import('@langchain/core/runnables')
  const { tool } = await import('@langchain/core/tools')
  class Scripted extends SimpleChatModel {
    _llmType() {
      return 'scripted'
    }
    async _call() {
      return ''
    }
    override async _generate() {
      const usage_metadata = { input_tokens: 40, output_tokens: 6, total_tokens: 46 }
      const message = new AIMessage<StandardMessageStructure>({
        content: 'It is sunny.',
        usage_metadata,
        response_metadata: { model: 'm-1' },
      })
      return { generations: [{ text: 'It is sunny.', message }] }
    }
  }
  const weather = tool(() => Promise.reject(new Error('no such city')), {
    name: 'weather',
    schema: { type: 'object', properties: { city: { type: 'string' } } },
  })
  const chain = RunnableLambda.from(async (question: string, config) => {
    await weather.invoke({ city: 'Rome' }, config).catch(() => {})
    return (await new Scripted({}).invoke(question, config)).text
  }).withConfig({ runName: 'forecast' })
  await chain.invoke('What is the weather in Rome?')
}

async function complete(client: import('openai').OpenAI): Promise<void> {
  await client.chat.completions.create({ model: 'gpt-5-mini', messages: [{ role: 'user', content: 'Say hello.' }] })
}
