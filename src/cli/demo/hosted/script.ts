import { isObject, parsedJson } from '../../../base/json-object.ts'
import type { JsonObject } from '../../../client/json.ts'

/** What the demo's model says. It depends on the conversation alone, so that a later demo can continue what an earlier one began. */

/** A message, as chat completions have them. */
export interface ChatMessage {
  readonly role: string
  readonly content: string | null
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly name: string } }[]
  readonly tool_call_id?: string
}

export interface Reply {
  readonly text?: string
  readonly calls?: readonly { readonly name: string; readonly arguments: JsonObject }[]
}

/** What has happened since the last message of the user. */
interface Turn {
  readonly message: string
  /** All messages of the user before it. */
  readonly earlier: string
  /** Results of the tools called, by name; JSON, or text. */
  readonly results: ReadonlyMap<string, unknown>
}

const SMALL_EUR = 50

/** The model's next message. The agent is known by its prompt. */
export function replyTo(messages: readonly ChatMessage[]): Reply {
  const turn = turnOf(messages)
  const prompt = messages.find(({ role }) => role === 'system')?.content ?? ''
  if (prompt.includes('refund desk')) return refundDesk(turn)
  if (prompt.includes('data steward')) return dataSteward(turn)
  if (prompt.includes('fit advisor')) return fitAdvisor(turn)
  if (prompt.includes('policy expert')) return policyExpert(turn)
  return { text: 'I am the scripted model of the demo: I only know the lines of its own agents.' }
}

function turnOf(messages: readonly ChatMessage[]): Turn {
  const last = messages.findLastIndex(({ role }) => role === 'user')
  const said = messages.slice(0, Math.max(0, last)).filter(({ role }) => role === 'user')
  const since = messages.slice(last + 1)
  const names = new Map(since.flatMap(({ tool_calls = [] }) => tool_calls.map((call) => [call.id, call.function.name])))
  const results = since.flatMap(({ role, tool_call_id = '', content }) =>
    role === 'tool' ? [[names.get(tool_call_id) ?? '', parsedJson(content ?? '') ?? content] as const] : [],
  )
  return {
    message: messages[last]?.content ?? '',
    earlier: said.map(({ content }) => content).join('\n'),
    results: new Map(results),
  }
}

/** Why a call failed or was rejected; undefined if it was made. */
function refusalOf(result: unknown): string | undefined {
  return isObject(result) && typeof result.error === 'string' ? result.error : undefined
}

function refundDesk({ message, earlier, results }: Turn): Reply {
  const all = `${earlier}\n${message}`
  const order = /LK-\d+/.exec(all)?.[0]
  const amount = Number(/(\d+(?:\.\d+)?) ?EUR/.exec(all)?.[1] ?? Number.NaN)
  if (order === undefined || Number.isNaN(amount))
    return { text: 'I can help with that. Which order is it, and how much was it? For example: *LK-20417, 139 EUR*.' }
  if (results.size === 0) return { calls: [{ name: 'get_order', arguments: { order } }] }
  const isUnclear = /worn|used|months|late/i.test(message)
  if (isUnclear && !results.has('ask_policy'))
    return {
      calls: [
        { name: 'ask_policy', arguments: { message: `May we refund ${order}? The customer writes: ${message}` } },
      ],
    }
  const tool = amount > SMALL_EUR ? 'issue_refund' : 'refund_small'
  if (!results.has(tool)) {
    const reason = message.replace(/\s+/g, ' ').slice(0, 160)
    return { calls: [{ name: tool, arguments: { order, amount_eur: amount, reason } }] }
  }
  const refusal = refusalOf(results.get(tool))
  if (refusal !== undefined)
    return {
      text: `I could not refund ${order}: ${refusal}. I told the customer, and offered a repair in our workshop instead.`,
    }
  return { text: `**${amount} EUR** for ${order} are on their way back and arrive within three working days.` }
}

function dataSteward({ message, results }: Turn): Reply {
  const customer = /[\w.+-]+@[\w.-]*\w/.exec(message)?.[0]
  if (customer === undefined) return { text: 'Whose data is it? I need the e-mail address of the account.' }
  if (results.size === 0) return { calls: [{ name: 'find_customer', arguments: { email: customer } }] }
  const asked = { customer, reason: 'request of the person, Art. 17 GDPR' }
  if (!results.has('delete_customer'))
    return {
      calls: [
        { name: 'delete_customer', arguments: asked },
        { name: 'anonymise_orders', arguments: asked },
      ],
    }
  const refusal = refusalOf(results.get('delete_customer')) ?? refusalOf(results.get('anonymise_orders'))
  if (refusal !== undefined)
    return { text: `Not everything was deleted for ${customer}: ${refusal}. I have noted it in the register.` }
  return {
    text: `The account of ${customer} is deleted, and its orders carry no name any more. The confirmation was sent.`,
  }
}

function fitAdvisor({ message, results }: Turn): Reply {
  if (/saddle|seat/i.test(message))
    return {
      text: 'Start with **inseam × 0.88** from the middle of the crank to the top of the saddle, then go down 5 mm if your hips rock.',
    }
  if (/thank/i.test(message)) return { text: 'With pleasure. Ride it for two weeks before you change anything else.' }
  if (!results.has('request_input'))
    return {
      calls: [
        {
          name: 'request_input',
          arguments: {
            question: 'How tall is the rider, and what is the inseam?',
            options: ['165 cm, inseam 76', '174 cm, inseam 81', '183 cm, inseam 87', '191 cm, inseam 92'],
          },
        },
      ],
    }
  const frame = /linden/i.test(message) ? 'Linden' : 'Gravel R2'
  if (!results.has('get_geometry')) return { calls: [{ name: 'get_geometry', arguments: { frame } }] }
  const given = String(results.get('request_input'))
  const height = Number(/\d{3}/.exec(given)?.[0] ?? 175)
  const size = height < 170 ? 'S' : height < 180 ? 'M' : height < 188 ? 'L' : 'XL'
  return {
    text: `For **${given}** I recommend the ${frame} in **${size}**. Its reach leaves room for a shorter stem, so you can sit lower later.\n\nI am fairly sure; if you are between two sizes, take the smaller one for narrow paths and the larger one for long days.`,
  }
}

function policyExpert({ message }: Turn): Reply {
  const text = /worn|used/i.test(message)
    ? 'Used goods are taken back only for a fault, and then in full within two years. Wear alone is no fault: offer a repair.'
    : 'A late delivery may be refunded in full until the parcel arrives; after that, shipping costs only. This case qualifies.'
  return { text }
}
