import type { Random } from '../../src/cli/demo/random.ts'

const MODELS = ['gpt-5-mini', 'claude-sonnet-4-5', 'gemini-2.5-pro', 'gpt-4o']
const PAYLOAD_BYTES = 4_096
const WORDS = (
  'the order was shipped on Friday and parcel service says that it arrives Monday customer asks whether a refund is ' +
  'possible because of delay we should check policy before answering return window thirty days from delivery item ' +
  'must be unused please confirm address so can send replacement café naïve search found three results first one ' +
  'describes how to configure retries with exponential backoff second explains limits'
).split(' ')

/** The payload of an event that reports a model call: about 4 KB of messages, most of it text, as JSON has them. */
export function modelCall(random: Random): Record<string, unknown> {
  const callId = `call_${random.int(1e7, 1e8)}`
  const order = { order_id: `A-${random.int(1e4, 1e5)}`, items: [{ sku: `S${random.int(1, 999)}`, price: 19.9 }] }
  const history = [
    { role: 'system', content: prose(random, 700) },
    { role: 'user', content: prose(random, random.int(200, 500)) },
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        { id: callId, type: 'function', function: { name: 'get_order', arguments: JSON.stringify(order, null, 1) } },
      ],
    },
    { role: 'tool', tool_call_id: callId, content: JSON.stringify({ ok: true, ...order, note: prose(random, 150) }) },
  ]
  const payload = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.request.model': random.pick(MODELS),
    'gen_ai.request.temperature': 0.2,
    'gen_ai.usage.input_tokens': random.int(500, 4_000),
    'gen_ai.usage.output_tokens': random.int(50, 900),
    'gen_ai.response.finish_reasons': ['stop'],
    'gen_ai.input.messages': history,
  }
  const left = PAYLOAD_BYTES - Buffer.byteLength(JSON.stringify(payload))
  return { ...payload, 'gen_ai.output.messages': [{ role: 'assistant', content: prose(random, Math.max(left, 100)) }] }
}

/** Sentences and paragraphs of about this many characters: some quotes and dashes, a line break every few sentences. */
function prose(random: Random, length: number): string {
  let text = ''
  while (text.length < length) {
    const words = Array.from({ length: random.int(5, 20) }, () => random.pick(WORDS))
    if (random.chance(0.1)) words[2] = `"${words[2]}"`
    if (random.chance(0.1)) words[3] = `${words[3]} –`
    text += `${words.join(' ')}.${random.chance(0.2) ? '\n\n' : ' '}`
  }
  return text
}
