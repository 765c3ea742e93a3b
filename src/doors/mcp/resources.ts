import type { RunStore } from '../../activity/runs/store.ts'
import { ApiError } from '../../base/errors.ts'
import { isUuid } from '../../base/ids.ts'
import { encodeJson } from '../../base/raw-json.ts'
import { guides, guideText } from '../../openapi/guides.ts'
import type { queryCatalogue } from '../../sql/analytics/catalogue.ts'
import type { ResourceProvider } from './provider.ts'
import { withoutLongMembers } from './tools/runs.ts'

type Catalogue = ReturnType<typeof queryCatalogue>

const JSON_TYPE = 'application/json'
const SCHEMA = 'schema://'
const RUN = 'run://'
const GUIDE = 'guide://'
const MARKDOWN = 'text/markdown'

/** `schema://<table>`: the tables that SQL can read. Like SQL, they are for workspace keys. */
export function schemaResources({ tables }: Catalogue): ResourceProvider {
  const resources = tables.map(({ name, description }) => ({
    uri: SCHEMA + name,
    name,
    title: `Table ${name}`,
    description,
    mimeType: JSON_TYPE,
  }))
  return {
    list: ({ caller }) => (caller.type === 'workspace' ? resources : []),
    templates: [
      {
        uriTemplate: `${SCHEMA}{table}`,
        name: 'table',
        title: 'Table for SQL',
        description: 'The columns of a table that query can read.',
        mimeType: JSON_TYPE,
      },
    ],
    read: ({ caller }, uri) => {
      if (!uri.startsWith(SCHEMA)) return undefined
      if (caller.type !== 'workspace')
        throw new ApiError('FORBIDDEN', 'tables are for workspace keys (svc_ws_…), not for agent keys', {
          reason: 'wrong_key_type',
        })
      const table = tables.find(({ name }) => SCHEMA + name === uri)
      return table && { mimeType: JSON_TYPE, text: encodeJson(table) }
    },
  }
}

/** `run://<run_id>`: one run, as `get_run` answers it. */
export function runResources(runs: Pick<RunStore, 'get'>): ResourceProvider {
  return {
    list: () => [],
    templates: [
      {
        uriTemplate: `${RUN}{run_id}`,
        name: 'run',
        title: 'Run',
        description: 'One run: its state, input, output and error.',
        mimeType: JSON_TYPE,
      },
    ],
    read: async ({ caller }, uri) => {
      if (!uri.startsWith(RUN)) return undefined
      const runId = uri.slice(RUN.length)
      if (!isUuid(runId)) return undefined
      const run = await runs.get(caller, runId.toLowerCase())
      return { mimeType: JSON_TYPE, text: encodeJson(withoutLongMembers(run)) }
    },
  }
}

/** `guide://<name>`: the guides that the service serves, such as `guide://sql.md`. */
export function guideResources(): ResourceProvider {
  const all = guides()
  const resources = all.map(({ name, title, about }) => ({
    uri: GUIDE + name,
    name,
    title,
    description: about,
    mimeType: MARKDOWN,
  }))
  return {
    list: () => resources,
    templates: [],
    read: (_context, uri) => {
      const guide = all.find(({ name }) => GUIDE + name === uri)
      return guide && { mimeType: MARKDOWN, text: guideText(guide) }
    },
  }
}
