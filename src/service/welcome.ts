import { script } from '../base/script.ts'
import { type Door, doors } from '../openapi/doors.ts'
import type { Config } from './config/config.ts'
import type { Service } from './lifecycle.ts'

type Started = Pick<Service, 'url' | 'isFirstStart' | 'freshKey' | 'isKeyIgnored'>

/**
 * What the start prints once the service is ready: the address and a new key first, then how programs that exist report
 * here, then a first call. Without a new key the ways in are one line, because they would be the same at every start.
 */
export function welcome(started: Started, { dataDir }: Pick<Config, 'dataDir'>): string {
  const { url, freshKey, isKeyIgnored } = started
  const lines = [
    '',
    `Agent Run Service is ready at ${url}`,
    `  dashboard: ${url}/`,
    `  reference: ${url}/docs`,
    `  data:      ${dataDir}`,
  ]
  if (freshKey === null)
    lines.push(`  guides:    ${url}/llms.txt for OpenTelemetry, Langfuse, OpenAI Agents, MCP, clients`)
  else lines.push(`  workspace key (shown only now; keep it): ${freshKey}`)
  if (isKeyIgnored)
    lines.push(
      '  BOOTSTRAP_WORKSPACE_KEY is ignored: a workspace already exists, and this key is not valid for it.',
      `  ${script('keys')} lists workspaces and keys, and creates new ones.`,
    )
  if (freshKey !== null) lines.push('', ...doorLines(url, freshKey))
  lines.push('', ...firstCall(started), '')
  return `${lines.join('\n')}\n`
}

function doorLines(url: string, key: string): string[] {
  return [
    `Does your program use one of these already? Paste what fits, and it reports here. Guides: ${url}/llms.txt`,
    ...doors({ url, key }).flatMap((door) => ['', ...linesOf(door)]),
  ]
}

function linesOf({ name, where, text }: Door): string[] {
  return [`  ${name}, ${where}:`, ...text.split('\n').map((line) => `    ${line}`)]
}

function firstCall({ url, isFirstStart, freshKey }: Started): string[] {
  const shown = freshKey ?? (isFirstStart ? '$BOOTSTRAP_WORKSPACE_KEY' : '$AGENT_RUN_KEY')
  const create = shown === '$AGENT_RUN_KEY' ? 'With your workspace key in AGENT_RUN_KEY, create' : 'Create'
  return [
    freshKey === null ? `${create} an agent:` : 'Or begin with plain HTTP: create an agent',
    '',
    `  curl ${url}/api/v1/agents -H "Authorization: Bearer ${shown}" \\`,
    `    -H 'Content-Type: application/json' -d '{"name": "my first agent"}'`,
  ]
}
