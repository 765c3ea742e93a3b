import { stampNow } from './invoke-stamps.ts'

/*
 * A model that answers at once, with OpenAI's chat completions: the rest of an invoke's time is the service's. Prints
 * its port. `model` selects how it streams: `instant`, or `ticker-100x50` for 100 tokens, one every 50 ms.
 */

const TEXT = 'Your parcel is on its way and will be with you tomorrow.'
const USAGE = { prompt_tokens: 42, completion_tokens: 12, total_tokens: 54 }
const QUESTION = {
  id: 'call_bench',
  type: 'function',
  function: { name: 'request_input', arguments: '{"question":"Which parcel do you mean?"}' },
}
const TICKER = /^ticker-(\d+)x(\d+)$/

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 0,
  development: false,
  async fetch(request) {
    const { model, stream } = (await request.json()) as { model: string; stream?: boolean }
    if (stream !== true) return Response.json(completion(model))
    const [, count = '1', intervalMs = '0'] = TICKER.exec(model) ?? []
    return new Response(ticking(model, Number(count), Number(intervalMs)), {
      headers: { 'content-type': 'text/event-stream' },
    })
  },
})
process.stdout.write(`${server.port}\n`)

function completion(model: string) {
  const message = { role: 'assistant', content: TEXT, refusal: null }
  const choice =
    model === 'asks'
      ? { message: { ...message, content: null, tool_calls: [QUESTION] }, finish_reason: 'tool_calls' }
      : { message, finish_reason: 'stop' }
  return { ...head(model, 'chat.completion'), choices: [{ index: 0, ...choice }], usage: USAGE }
}

function ticking(model: string, count: number, intervalMs: number): ReadableStream {
  const base = head(model, 'chat.completion.chunk')
  const chunk = (delta: object, finish_reason: string | null = null) =>
    frame({ ...base, choices: [{ index: 0, delta, finish_reason }] })
  // A direct stream of Bun, which can flush immediately.
  return new ReadableStream({
    type: 'direct',
    async pull(controller: ReadableStreamDirectController) {
      controller.write(chunk({ role: 'assistant', content: '' }))
      for (let token = 0; token < count; token++) {
        if (intervalMs > 0) await Bun.sleep(intervalMs)
        controller.write(chunk({ content: stampNow() }))
        await controller.flush()
      }
      controller.write(`${chunk({}, 'stop')}${frame({ ...base, choices: [], usage: USAGE })}data: [DONE]\n\n`)
      controller.close()
    },
  } as unknown as UnderlyingSource)
}

function head(model: string, object: string) {
  return { id: 'chatcmpl-bench', object, created: 1_767_225_600, model }
}

function frame(data: object): string {
  return `data: ${JSON.stringify(data)}\n\n`
}
