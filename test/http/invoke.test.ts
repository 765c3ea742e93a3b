import { expect, test } from 'bun:test'
import { newHostedAgent } from '../support/hosted.ts'
import { startModelServer } from '../support/model-server.ts'
import { startTestService } from '../support/service.ts'

test('x', async () => {
  const model = startModelServer({ text: ['a','b','c'] })
  const service = await startTestService({ OPENAI_BASE_URL: model.url })
  const agent = await newHostedAgent(service)
  const t0 = performance.now()
  console.log((await agent.invoke({ input: { message: 'hi' } })).text, performance.now()-t0)
  const r = await agent.stream({})
  console.log(await r.all())
})
