/*
 * What the agent of the comparison does in each step, for systems that leave the model and the tools to the program: the
 * same requests that the service makes. MODEL_URL and TOOLS_URL say where.
 */
const { MODEL_URL, TOOLS_URL, PROMPT } = process.env
const TOOLS = ['charge', 'ship'].map((name) => ({
  type: 'function',
  function: {
    name,
    description: `${name}s an order`,
    parameters: { type: 'object', required: ['order'], properties: { order: { type: 'string' } } },
  },
}))

/** The first messages of a run. */
export function opening(order) {
  return [
    { role: 'system', content: PROMPT },
    { role: 'user', content: order },
  ]
}

/** @returns the model's next message */
export async function askModel(messages) {
  const { choices } = await post(`${MODEL_URL}/chat/completions`, { model: 'scripted', messages, tools: TOOLS })
  return choices[0].message
}

/** Makes a call that the model requested. Its Idempotency-Key is the same however often it is made. */
export async function callTool(run, { id, function: { name, arguments: input } }) {
  const output = await post(`${TOOLS_URL}${name}`, JSON.parse(input), { 'idempotency-key': `${run}-${id}` })
  return { role: 'tool', tool_call_id: id, content: JSON.stringify(output) }
}

export function needsApproval(call) {
  return call.function.name === 'ship'
}

async function post(url, body, headers = {}) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${url} answered ${response.status}`)
  return response.json()
}
