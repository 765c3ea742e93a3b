import { parseIntact } from '../../../base/intact-json.ts'
import { isObject } from '../../../base/json-object.ts'
import { pretty } from '../data/json.ts'
import { readArguments } from '../waiting/decision.tsx'

/** Tools of an agent while they are edited. */

/** A form for each, or their JSON as typed. */
export type Tools = readonly ToolDraft[] | string

export type ToolType = 'http' | 'mcp' | 'agent'

export interface ToolDraft {
  /** The tool as the API takes it. */
  readonly tool: Readonly<Record<string, unknown>>
  /** The text of each member that is edited as JSON, as typed: it may not be valid JSON yet. */
  readonly texts: ReadonlyMap<string, string>
}

const COMMON = { name: '', description: '' }

const QUERY = { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] }
const NOTHING_TYPED: ReadonlyMap<string, string> = new Map()

/** A new tool of each type. */
const TEMPLATES: ReadonlyMap<string, ToolDraft['tool']> = new Map([
  ['http', { type: 'http', ...COMMON, method: 'GET', url: 'https://', parameters: QUERY }],
  ['mcp', { type: 'mcp', ...COMMON, server_url: 'https://' }],
  ['agent', { type: 'agent', ...COMMON, agent_id: '' }],
])

export function newDraft(type: ToolType): ToolDraft {
  return { tool: TEMPLATES.get(type) ?? { type }, texts: NOTHING_TYPED }
}

/** The tools in a JSON text; the text if it is not an array of tools of known types, which a form cannot show. */
export function toolsOf(text: string): Tools {
  try {
    const tools = text.trim() === '' ? [] : parseIntact(text)
    if (!Array.isArray(tools) || !tools.every(isTool)) return text
    return tools.map((tool) => ({ tool, texts: NOTHING_TYPED }))
  } catch {
    return text
  }
}

function isTool(value: unknown): value is ToolDraft['tool'] {
  return isObject(value) && typeof value.type === 'string' && TEMPLATES.has(value.type)
}

/** The JSON text of tools; not valid as long as a member is not. */
export function textOf(tools: Tools): string {
  if (typeof tools === 'string') return tools.trim() || '[]'
  const text = `[${tools.map(toolText).join(', ')}]`
  try {
    return pretty(parseIntact(text))
  } catch {
    return text
  }
}

function toolText({ tool, texts }: ToolDraft): string {
  const members = Object.entries(tool).map(
    ([name, value]) => `${JSON.stringify(name)}: ${texts.get(name) ?? JSON.stringify(value)}`,
  )
  return `{${members.join(', ')}}`
}

/** The draft with another value of a member; `undefined` removes it. */
export function withMember({ tool, texts }: ToolDraft, name: string, value: unknown): ToolDraft {
  const others = new Map(texts)
  others.delete(name)
  const members = Object.entries({ ...tool, [name]: value }).filter(
    ([member]) => member !== name || value !== undefined,
  )
  return { tool: Object.fromEntries(members), texts: others }
}

/** The draft with a member that is edited as JSON; an empty text removes it. */
export function withJson(draft: ToolDraft, name: string, text: string): ToolDraft {
  if (text.trim() === '') return withMember(draft, name, undefined)
  const value = objectProblem(text) === '' ? parseIntact(text) : (draft.tool[name] ?? {})
  const { tool, texts } = withMember(draft, name, value)
  return { tool, texts: new Map(texts).set(name, text) }
}

/** The text of a member that is edited as JSON. */
export function jsonOf({ tool, texts }: ToolDraft, name: string): string {
  return texts.get(name) ?? (tool[name] === undefined ? '' : pretty(tool[name]))
}

/** Why a text is not a JSON object; empty if it is one, or if there is none. */
export function objectProblem(text: string): string {
  if (text.trim() === '') return ''
  const read = readArguments(text)
  return 'problem' in read ? read.problem : ''
}
