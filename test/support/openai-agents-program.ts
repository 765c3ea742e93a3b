import {
  Agent,
  addTraceProcessor,
  BatchTraceProcessor,
  getGlobalTraceProvider,
  OpenAITracingExporter,
  run,
  setOpenAIAPI,
  setTraceProcessors,
  setTracingExportApiKey,
  tool,
  withTrace,
} from '@openai/agents'
import { z } from 'zod'

/**
 * A program of a user of the OpenAI Agents SDK: `bun test/support/openai-agents-program.ts`. It knows of the service only the
 * address of the exporter and the key; `SEND_TWICE` sends each batch twice, `API` is the API of the model.
 */

const { TRACES_ENDPOINT = '', TRACES_KEY = '', SEND_TWICE, API } = process.env

setTracingExportApiKey(TRACES_KEY)
setOpenAIAPI(API === 'responses' ? 'responses' : 'chat_completions')
const exporter = new OpenAITracingExporter({ endpoint: TRACES_ENDPOINT })
type Items = Parameters<typeof exporter.export>[0]
setTraceProcessors([
  new BatchTraceProcessor({
    async export(items: Items, signal?: AbortSignal) {
      await exporter.export(items, signal)
      if (SEND_TWICE !== undefined) await exporter.export(items, signal)
    },
  }),
])
addTraceProcessor({
  async onTraceStart() {},
  async onTraceEnd() {},
  async onSpanStart() {},
  async onSpanEnd(span) {
    process.stdout.write(`${JSON.stringify(span.toJSON())}\n`)
  },
  async shutdown() {},
  async forceFlush() {},
})

const search = tool({
  name: 'search',
  description: 'Searches orders.',
  parameters: z.object({ query: z.string() }),
  execute: ({ query }) => {
    if (query === 'broken') throw new Error('the index is gone')
    return `found ${query}`
  },
})
const support = new Agent({ name: 'Support', instructions: 'Help.', model: 'gpt-5-mini', tools: [search] })
const triage = new Agent({ name: 'Triage', instructions: 'Hand off.', model: 'gpt-5-mini', handoffs: [support] })

await withTrace('Orders', async () => void (await run(triage, 'Where is my order?')), {
  groupId: 'conversation-9',
  metadata: { tenant: 'acme' },
})
await getGlobalTraceProvider().forceFlush()
await getGlobalTraceProvider().shutdown()
