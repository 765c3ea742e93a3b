/**
 * Programs as users of Langfuse have them: `bun test/support/langfuse-program.ts <name> <trace name>`. They know nothing of the
 * service but the variables `LANGFUSE_*`. Each prints the id of its trace.
 */
const PROGRAMS = new Map([
  ['v3', v3],
  ['otel', otel],
  ['langchain', langchain],
])

const [program = '', traceName = ''] = process.argv.slice(2)
process.stdout.write(`${await PROGRAMS.get(program)?.()}\n`)

export {}

async function v3(): Promise<string> {
  const { Langfuse } = await import('langfuse')
  const langfuse = new Langfuse({ flushAt: 3 })
  const trace = langfuse.trace({ name: traceName, userId: 'u-1', sessionId: 's-1', tags: ['x'], metadata: { a: 1 } })
  const span = trace.span({ name: 'plan', input: { q: 1 } })
  const generation = span.generation({ name: 'llm', model: 'gpt-5-mini', input: [{ role: 'user', content: 'hi' }] })
  generation.update({ metadata: { attempt: 1 } })
  generation.end({ output: 'hello', usage: { promptTokens: 120, completionTokens: 30 }, costDetails: { total: 0.5 } })
  span.event({ name: 'noticed', level: 'WARNING' })
  span.span({ name: 'fetch' }).end({ level: 'ERROR', statusMessage: 'no such order' })
  span.end({ output: { done: true } })
  generation.score({ name: 'helpful', value: 1, dataType: 'BOOLEAN' })
  trace.score({ name: 'grade', value: 'good', comment: 'as it was asked' })
  trace.update({ output: 'hello' })
  const prompt = await langfuse.getPrompt('greeting', undefined, { fallback: 'Hello {{name}}', maxRetries: 0 })
  if (prompt.compile({ name: 'you' }) !== 'Hello you') throw new Error('expected the fallback')
  await langfuse.shutdownAsync()
  return trace.id
}

async function otel(): Promise<string> {
  const { NodeSDK } = await import('@opentelemetry/sdk-node')
  const { LangfuseSpanProcessor } = await import('@langfuse/otel')
  const { propagateAttributes, startActiveObservation, startObservation } = await import('@langfuse/tracing')
  const { LangfuseClient } = await import('@langfuse/client')
  const sdk = new NodeSDK({ spanProcessors: [new LangfuseSpanProcessor()] as never })
  sdk.start()
  const traceId = await startActiveObservation('plan', async (span) => {
    return propagateAttributes({ traceName, userId: 'u-1', sessionId: 's-1', tags: ['x'] }, async () => {
      span.update({ input: { q: 1 } })
      const generation = startObservation(
        'llm',
        { model: 'gpt-5-mini', input: [{ role: 'user', content: 'hi' }] },
        { asType: 'generation' },
      )
      generation
        .update({ output: 'hello', usageDetails: { input: 120, output: 30 }, costDetails: { total: 0.5 } })
        .end()
      const tool = startObservation('fetch', { input: { id: 7 } }, { asType: 'tool' })
      tool.update({ level: 'ERROR', statusMessage: 'no such order' }).end()
      span.update({ output: { done: true } })
      return span.traceId
    })
  })
  await sdk.shutdown()
  const client = new LangfuseClient()
  client.score.create({ traceId, name: 'grade', value: 'good' })
  await client.flush()
  return traceId
}

async function langchain(): Promise<string> {
  const { CallbackHandler } = await import('langfuse-langchain')
  const { FakeListChatModel } = await import('@langchain/core/utils/testing')
  const { RunnableLambda } = await import('@langchain/core/runnables')
  const handler = new CallbackHandler({ userId: 'u-1', sessionId: 's-1', tags: ['x'], flushAt: 3 })
  const model = new FakeListChatModel({ responses: ['hello'] })
  const chain = RunnableLambda.from(async (input: string, config) => model.invoke(input, config)).withConfig({
    runName: traceName,
  })
  await chain.invoke('hi', { callbacks: [handler as never] })
  await handler.shutdownAsync()
  return handler.traceId ?? ''
}
