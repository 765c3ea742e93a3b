import { TEXTS } from '../content/texts.ts'
import type { Random } from '../random.ts'
import type { HostedName } from './agents.ts'

/** What people ask the hosted agents: the messages of one session. */
export interface Conversation {
  readonly agent: HostedName
  readonly user: string
  readonly messages: readonly string[]
}

const REASONS = [
  'the frame arrived with a crack at the head tube',
  'the parcel is three weeks late and I bought another one',
  'one of the two panniers was missing',
  'the helmet is worn, but the buckle broke on the second ride',
  'the battery holds half of what was promised',
  'the wrong colour was delivered twice',
]
const LARGE_EUR = ['1290', '139', '94.50', '86', '158', '412', '2450']
const SMALL_EUR = ['42', '19.90', '34']

const FIT_QUESTIONS = [
  ['Which size of the Gravel R2 should I take?', 'And how high does the saddle go?', 'Thank you!'],
  ['I want a Linden for my partner. Which frame size fits?', 'Thanks, that helps.'],
  ['Is the Gravel R2 in M too big for me?'],
]

const HELD_KINDS = [
  (random: Random) => refund(random, LARGE_EUR),
  deletion,
  (random: Random): Conversation => ({
    agent: 'Fit advisor',
    user: random.pick(TEXTS.people.customers),
    messages: random.pick(FIT_QUESTIONS),
  }),
  (random: Random) => refund(random, LARGE_EUR),
]

/**
 * A request that waits for a person's decision or answer.
 * @param kind an index into the kinds of requests, modulo their number
 */
export function heldConversation(random: Random, kind = random.int(0, HELD_KINDS.length - 1)): Conversation {
  return HELD_KINDS[kind % HELD_KINDS.length]!(random)
}

/** A request that the agents settle without a person. */
export function easyConversation(random: Random): Conversation {
  const small = refund(random, SMALL_EUR)
  return random.chance(0.4)
    ? { ...small, messages: ['Hello, I would like a refund, please.', ...small.messages] }
    : small
}

function refund(random: Random, amounts: readonly string[]): Conversation {
  const order = `LK-${random.int(20_000, 89_999)}`
  const message = `Please refund ${random.pick(amounts)} EUR for order ${order}: ${random.pick(REASONS)}.`
  return { agent: 'Refund desk', user: random.pick(TEXTS.people.customers), messages: [message] }
}

function deletion(random: Random): Conversation {
  const user = random.pick(TEXTS.people.customers)
  return {
    agent: 'Data steward',
    user,
    messages: [`Please delete everything you have about me. My address is ${user}.`],
  }
}

export const COMMENTS = {
  approved: ['Photos checked.', 'Within our terms.', 'Spoke to the customer.', 'OK, but please note it in the file.'],
  rejected: ['No photo of the damage yet', 'The order is still open', 'Please offer an exchange first'],
} as const
