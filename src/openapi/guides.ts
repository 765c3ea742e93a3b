import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path/posix'
import { doors } from './doors.ts'

/**
 * The guides in `docs/`, as the running service serves them: for assistants and for people without a clone. Links to
 * what is not served become plain text.
 */

/** A guide that the service serves. */
interface Guide {
  /** The last part of its URL. */
  readonly name: string
  /** Its path at the service, such as `/docs/sql.md`. */
  readonly path: string
  readonly title: string
  /** One line: what a reader finds there. */
  readonly about: string
}

/** The headings of `/llms.txt`; the format gives the name "Optional" to what a reader may skip. */
type Section = 'Ways in' | 'Guides' | 'Optional'

type Listed = readonly [section: Section, source: string, title: string, about: string]

const ROOT = join(import.meta.dir, '..', '..')

/** In the order of `/llms.txt`. A test compares this list with the folder. */
const LISTED: readonly Listed[] = [
  ['Guides', 'README.md', 'First steps', 'start the service, see the demo, report from a program'],
  ['Guides', 'docs/curl.md', 'Five minutes with curl', 'report a run with plain calls, and query it with SQL'],
  ['Ways in', 'docs/opentelemetry.md', 'OpenTelemetry', 'traces and logs of instrumented programs as runs'],
  ['Ways in', 'docs/openai-agents.md', 'OpenAI Agents SDK', 'its exporter with another address: traces as runs'],
  [
    'Ways in',
    'docs/langfuse.md',
    'Langfuse',
    'programs with an SDK of Langfuse, with only the address and key changed',
  ],
  ['Ways in', 'docs/mcp.md', 'MCP', 'SQL, runs, decisions and hosted agents for assistants'],
  ['Ways in', 'docs/client.md', 'Client library', 'report, read, follow, query and invoke in TypeScript and Python'],
  ['Guides', 'docs/api.md', 'API', 'all calls; errors, lists, retries, versions, limits'],
  ['Guides', 'docs/keys.md', 'Keys', 'workspace keys and agent keys: what each may do, rotation, revocation'],
  ['Guides', 'docs/people.md', 'People', 'signing in by OpenID Connect, roles, suspension'],
  ['Guides', 'docs/workspaces.md', 'Workspaces', 'tenants, retention and erasure, for the operator'],
  ['Guides', 'docs/agents.md', 'Agents', 'external and hosted agents, their settings and versions'],
  ['Guides', 'docs/runs.md', 'Runs', 'start, end, read, search and delete runs; conversations, sessions and users'],
  ['Guides', 'docs/events.md', 'Events', 'durable batches of events, and those of the service itself'],
  ['Guides', 'docs/tasks.md', 'Tasks', 'steps of a run, reported in any order'],
  ['Guides', 'docs/usage.md', 'Usage', 'tokens and cost: the names that count, and prices'],
  ['Guides', 'docs/sql.md', 'SQL', 'tables, columns, paths into payloads, limits, examples'],
  ['Guides', 'docs/clickhouse-clients.md', 'ClickHouse clients', 'use the tables from Grafana and other programs'],
  ['Guides', 'docs/scores.md', 'Scores', 'ratings and evaluations of runs, also from browsers, and SQL over them'],
  ['Guides', 'docs/feeds.md', 'Live feeds', 'event streams and WebSockets, from any position'],
  ['Guides', 'docs/webhooks.md', 'Webhooks', 'signed messages to other systems'],
  ['Guides', 'docs/alerts.md', 'Alerts', 'queries that notify when a condition holds'],
  ['Guides', 'docs/hosted-agents.md', 'Hosted agents', 'agents that the service runs: tools, approvals, sessions'],
  ['Guides', 'docs/dashboard.md', 'Dashboard', 'a tour of the page'],
  ['Guides', 'docs/operations.md', 'Operations', 'configuration, health, metrics, upgrades'],
  ['Guides', 'docs/backup.md', 'Backup and restore', 'backups, and stores that were lost or restored'],
  ['Guides', 'docs/security.md', 'Security', 'keys, isolation of tenants, outbound network access, secrets'],
  ['Guides', 'docs/cluster.md', 'Several machines', 'how to run the service as a cluster'],
  ['Optional', 'docs/guarantees.md', 'Guarantees', 'what is promised, and the test of each promise'],
  ['Optional', 'docs/architecture.md', 'Architecture', 'how the service works'],
  ['Optional', 'docs/decisions.md', 'Decisions', 'what was decided and why, with measurements'],
  ['Optional', 'docs/benchmarks.md', 'Benchmarks', 'how fast it is, and how to measure it'],
  ['Optional', 'docs/CHANGELOG.md', 'Changelog', 'what users notice, by version'],
]

/** Not served: they are for people who change the code, and have a clone. */
export const UNSERVED: readonly string[] = ['docs/contributing.md', 'docs/simulation.md']

const guideOf = ([, source, title, about]: Listed): Guide => {
  const name = source.slice(source.lastIndexOf('/') + 1)
  return { name, path: `/docs/${name}`, title, about }
}

const SOURCES: ReadonlyMap<string, string> = new Map(LISTED.map((listed) => [guideOf(listed).name, listed[1]]))

const texts = new Map<string, string>()

/** All guides that the service serves, in the order in which a newcomer would read them. */
export function guides(): readonly Guide[] {
  return LISTED.map(guideOf)
}

/** The Markdown of a guide; its links work next to the other guides. Read once. @throws Error if the file is missing */
export function guideText({ name }: Pick<Guide, 'name'>): string {
  const source = SOURCES.get(name) ?? ''
  const text = texts.get(name) ?? withServedLinks(readFileSync(join(ROOT, source), 'utf8'), source)
  texts.set(name, text)
  return text
}

/**
 * `/llms.txt` in the format of llmstxt.org: what this is, how programs reach it, and all guides with a line each.
 * @param origin of the service, as its readers reach it
 */
export function llmsText(origin: string): string {
  const sections = (['Ways in', 'Guides', 'Optional'] as const).map((section) => {
    const listed = LISTED.filter(([own]) => own === section).map(guideOf)
    const links = listed.map(({ path, title, about }) => `- [${title}](${origin}${path}): ${about}`)
    if (section === 'Guides')
      links.push(`- [OpenAPI document](${origin}/docs/json): every call, with schemas and samples`)
    return `## ${section}\n\n${links.join('\n')}\n`
  })
  const ways = doors({ url: origin }).map(
    ({ name, where, language, text }) => `${name}, ${where}:\n\n\`\`\`${language}\n${text}\n\`\`\`\n`,
  )
  return `${INTRODUCTION}\n${ways.join('\n')}\n${sections.join('\n')}`
}

const INTRODUCTION = `# Agent Run Service

> AI agents report their runs, events and tasks to this service. People and programs watch them live, query them in SQL, get webhooks and alerts, and run hosted agents that pause until a person decides.

Every call needs a key: a workspace key (\`svc_ws_…\`) for everything, or an agent key (\`svc_agent_…\`) for one agent. The first start of the service printed a workspace key; the dashboard, at \`/\`, and \`POST /api/v1/keys\` create others. Answers have the form \`{"data": …, "error": null}\`.

Programs that are already instrumented report here once they have this address and a key:
`

/** Links outside fenced code; a text may have brackets within, and be split over lines. */
const LINK = /(!?)\[((?:[^[\]]|\[[^[\]]*\])*)\]\(([^()\s#]*)(#[^()\s]*)?\)/g

function withServedLinks(text: string, source: string): string {
  return outsideFences(text, (prose) =>
    prose.replaceAll(LINK, (link, image: string, label: string, target: string, anchor = '') => {
      if (/^[a-z]+:/.test(target) || (target === '' && image === '')) return link
      const name = nameOf(join(dirname(source), target))
      return name === undefined || image !== '' ? label : `[${label}](${name}${anchor})`
    }),
  )
}

/** The name of a served file; undefined if it is not served. */
function nameOf(source: string): string | undefined {
  return LISTED.find(([, each]) => each === source) && source.slice(source.lastIndexOf('/') + 1)
}

function outsideFences(text: string, change: (prose: string) => string): string {
  return text
    .split(/(^ *```[\s\S]*?^ *```$)/m)
    .map((part, index) => (index % 2 === 0 ? change(part) : part))
    .join('')
}
