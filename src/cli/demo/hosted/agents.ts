import type { components } from '../../../client/generated/api.ts'

type HostedAgent = components['schemas']['CreateAgent'] & { readonly prompt: string }
type Tool = NonNullable<HostedAgent['tools']>[number]

/** The name of the demo's model. No provider has a model of this name, so a demo never spends money. */
const MODEL = 'scripted/gpt-5-mini'

export type HostedName = 'Policy expert' | 'Refund desk' | 'Data steward' | 'Fit advisor'

export interface HostedProfile {
  readonly name: HostedName
  readonly agent: Omit<HostedAgent, 'name'>
  /** Earlier prompts, oldest first: the agent has a version for each. */
  readonly earlierPrompts: readonly string[]
}

const text = { type: 'string' } as const
const REFUND = {
  type: 'object',
  required: ['order', 'amount_eur', 'reason'],
  properties: { order: text, amount_eur: { type: 'number', minimum: 0 }, reason: text },
}

const POLICY_PROMPT =
  'You are the policy expert of Larkspur. Say in two sentences what the returns policy says about a case.'

const STEWARD_PROMPT = `You are the data steward of Larkspur. You carry out requests under data protection law: look the person up,
delete the account, and keep of the orders only what tax law requires. Deletions are final: a person approves each.`

const FIT_PROMPT = `You are the fit advisor of Larkspur. Recommend a frame size. Ask for height and inseam before you recommend, and say
how sure you are.`

const REFUND_PROMPTS = [
  'You are the refund desk of Larkspur. Look the order up and refund it.',
  'You are the refund desk of Larkspur. Look the order up. Refund up to 50 EUR yourself; above that, ask for approval.',
  `You are the refund desk of Larkspur. Look the order up first. Refund up to 50 EUR yourself; above that, ask for approval. When
the case is not clear, ask the policy expert. Tell the customer what happens next, in one or two sentences.`,
]

/** @param policyExpert the id of the agent that the refund desk asks */
export function hostedProfiles(toolsUrl: string, policyExpert: string): readonly HostedProfile[] {
  return [
    {
      name: 'Refund desk',
      earlierPrompts: REFUND_PROMPTS.slice(0, -1),
      agent: {
        description: 'Settles refunds. Above 50 EUR a person approves.',
        runtime_type: 'hosted',
        model: MODEL,
        prompt: REFUND_PROMPTS.at(-1) ?? '',
        tools: [
          getTool(`${toolsUrl}/orders`, 'get_order', 'Reads an order.', 'order'),
          { ...postTool(`${toolsUrl}/refunds`, 'refund_small', 'Refunds up to 50 EUR.'), parameters: REFUND },
          {
            ...postTool(`${toolsUrl}/refunds`, 'issue_refund', 'Refunds more than 50 EUR.'),
            parameters: REFUND,
            requires_approval: true,
          },
          { type: 'agent', name: 'ask_policy', description: 'Asks the policy expert.', agent_id: policyExpert },
        ],
      },
    },
    {
      name: 'Data steward',
      earlierPrompts: [],
      agent: {
        description: 'Carries out requests to delete personal data. A person approves each deletion.',
        runtime_type: 'hosted',
        model: MODEL,
        prompt: STEWARD_PROMPT,
        tools: [
          getTool(`${toolsUrl}/customers`, 'find_customer', 'Finds a customer.', 'email'),
          deletion(toolsUrl, 'delete_customer', 'Deletes the account, for good.'),
          deletion(toolsUrl, 'anonymise_orders', 'Removes the name from all orders, for good.'),
        ],
      },
    },
    {
      name: 'Fit advisor',
      earlierPrompts: [FIT_PROMPT.slice(0, FIT_PROMPT.indexOf(' Ask'))],
      agent: {
        description: 'Recommends frame sizes in the chat. Asks the rider for measures.',
        runtime_type: 'hosted',
        model: MODEL,
        prompt: FIT_PROMPT,
        allow_input_requests: true,
        tools: [getTool(`${toolsUrl}/geometry`, 'get_geometry', 'Reads the geometry of a frame.', 'frame')],
      },
    },
  ]
}

export const POLICY_EXPERT: HostedProfile = {
  name: 'Policy expert',
  earlierPrompts: [],
  agent: {
    description: 'Knows the returns policy; works for other agents.',
    runtime_type: 'hosted',
    model: MODEL,
    prompt: POLICY_PROMPT,
  },
}

function getTool(url: string, name: string, description: string, argument: string): Tool {
  const parameters = { type: 'object', required: [argument], properties: { [argument]: text } }
  return { type: 'http', name, description, method: 'GET', url, parameters }
}

function postTool(url: string, name: string, description: string) {
  return { type: 'http', name, description, method: 'POST', url } as const
}

function deletion(toolsUrl: string, name: string, description: string): Tool {
  const parameters = { type: 'object', required: ['customer', 'reason'], properties: { customer: text, reason: text } }
  return { ...postTool(`${toolsUrl}/deletions`, name, description), parameters, requires_approval: true }
}
