import { sleep } from '../../../base/abort.ts'
import { isCallFailure } from '../../../client/errors.ts'
import type { Client } from '../../../client/index.ts'
import type { Outcome } from '../../../client/resources.ts'
import type { Random } from '../random.ts'
import type { HostedName } from './agents.ts'
import { COMMENTS, type Conversation, easyConversation, heldConversation } from './requests.ts'

interface DeskDeps {
  readonly client: Client
  readonly agents: ReadonlyMap<HostedName, string>
  readonly random: Random
}

const HELD_RATE = 0.5
const REJECTED_RATE = 0.2
const EDITED_RATE = 0.15
const HALF = 0.5
/** Maximum of the demo's runs that are left waiting: there is always something to decide, but never a flood. */
const LEFT_WAITING_MAX = 6
const ANSWERS = ['174 cm, inseam 81', '183 cm, inseam 87', '168 cm, 77 I think', '191 cm, inseam 92']

/** Talks with the hosted agents as customers do, and decides as colleagues do. */
export class Desk {
  constructor(private readonly deps: DeskDeps) {}

  /** Sends a message. @param sessionId undefined: begins a session */
  say({ agent, user }: Conversation, message: string, sessionId: string | undefined): Promise<Outcome> {
    const { client, agents } = this.deps
    const session = sessionId === undefined ? { startSession: true, externalUserId: user } : { sessionId }
    return client.agents.invoke(agents.get(agent) ?? '', { message }, session)
  }

  /** Decides what a run waits for, as a colleague would. @returns the outcome of the resumed run */
  decide(outcome: Outcome): Promise<Outcome> {
    const { client, random } = this.deps
    if ('awaiting_input' in outcome)
      return client.inputRequests.answer(outcome.awaiting_input.request_id, random.pick(ANSWERS))
    if (!('awaiting_approval' in outcome)) return Promise.resolve(outcome)
    const { approval_id, input, tool } = outcome.awaiting_approval
    if (random.chance(REJECTED_RATE))
      return client.approvals.reject(approval_id, { comment: random.pick(COMMENTS.rejected) })
    const { amount_eur: amount } = input
    const isEdited = tool === 'issue_refund' && typeof amount === 'number' && random.chance(EDITED_RATE)
    const edit = isEdited ? { editedInput: { ...input, amount_eur: amount * HALF } } : {}
    const comment = isEdited ? 'Half of it: the rest can still be used.' : random.pick(COMMENTS.approved)
    return client.approvals.approve(approval_id, { ...edit, comment })
  }

  /** Has conversations one after the other, a few seconds apart, until `over`. Leaves some decisions to people. */
  async keepBusy(over: AbortSignal): Promise<void> {
    const { random } = this.deps
    while (!over.aborted) {
      const isHeld = random.chance(HELD_RATE)
      const mayLeave = isHeld && (await this.waiting()) < LEFT_WAITING_MAX
      await this.converse(isHeld ? heldConversation(random) : easyConversation(random), mayLeave, over)
      await sleep(random.latencyMs(4_000), over)
    }
  }

  private async converse(conversation: Conversation, mayLeave: boolean, over: AbortSignal): Promise<void> {
    const { random } = this.deps
    let sessionId: string | undefined
    for (const message of conversation.messages) {
      if (over.aborted) return
      let outcome = await this.say(conversation, message, sessionId)
      while (isWaiting(outcome)) {
        if (mayLeave) return
        await sleep(random.latencyMs(3_000), over)
        if (over.aborted) return
        outcome = await this.decide(outcome)
      }
      sessionId = 'session_id' in outcome ? (outcome.session_id ?? undefined) : undefined
      if (sessionId === undefined) return
      await sleep(random.latencyMs(2_500), over)
    }
  }

  /** How many of the demo's runs wait for a person. */
  private async waiting(): Promise<number> {
    const { client, agents } = this.deps
    const ids = new Set(agents.values())
    const pages = await Promise.all([
      client.request('GET', '/api/v1/approvals', { query: { status: 'pending' } }),
      client.request('GET', '/api/v1/input-requests', { query: { status: 'pending' } }),
    ])
    return pages
      .flatMap(({ items }) => items as readonly { agent_id: string }[])
      .filter(({ agent_id }) => ids.has(agent_id)).length
  }
}

export function isWaiting(outcome: Outcome): boolean {
  return 'awaiting_approval' in outcome || 'awaiting_input' in outcome
}

/**
 * Whether the service uses the demo's model: asks for an answer, and sees who gives it.
 * @param answers how many answers the demo's model has given
 */
export async function usesModel(client: Client, agentId: string, answers: () => number): Promise<boolean> {
  const before = answers()
  try {
    await client.agents.invoke(agentId, { message: 'May a late parcel be refunded?' })
  } catch (error) {
    if (isCallFailure(error)) return false
    throw error
  }
  return answers() > before
}
