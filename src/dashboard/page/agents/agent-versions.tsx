import { useEffect } from 'preact/hooks'
import { words } from '../../../base/format.ts'
import { addressState, number } from '../context/address-state.ts'
import { useKeyNames } from '../context/key-names.ts'
import { hrefOf } from '../context/router.ts'
import { useSession } from '../context/session.ts'
import type { Listed } from '../data/api.ts'
import { plain } from '../data/json.ts'
import { useLoad } from '../data/loading.ts'
import type { Agent, Schemas } from '../data/records.ts'
import { ConfirmButton } from '../parts/confirm.tsx'
import { Diff } from '../parts/diff.tsx'
import { Select } from '../parts/fields.tsx'
import { Scrollable } from '../parts/scrollable.tsx'
import { Loaded } from '../parts/states.tsx'
import { Table } from '../parts/table.tsx'
import { Ago } from '../parts/time.tsx'
import { AGENT_LIST } from './agent-list.tsx'

type Summary = Schemas['AgentVersionSummary']
type Version = Schemas['AgentVersion']

/** The service keeps no more. */
const LIST_LIMIT = 200
const VERSIONS = addressState({ version: number, with: number })

/** The versions of an agent: who made them and when, what changed between any two, and a button to restore one. */
export function AgentVersions({ agent }: { readonly agent: Agent }) {
  const { api, directory } = useSession()
  const path = `/api/v1/agents/${agent.agent_id}/versions`
  const read = useLoad(
    (signal) => api.get<Listed<Summary>>(path, { limit: LIST_LIMIT }, signal),
    [path, agent.version],
    { subject: path },
  )
  const current = read.data?.items[0]?.version ?? agent.version
  // If someone else has edited the agent, the page shows that version, too.
  useEffect(() => {
    if (current !== agent.version) void directory.refresh()
  }, [current, agent.version])
  return (
    <Loaded read={read} lines={5}>
      {({ items }) => <VersionList agent={agent} versions={items} current={current} />}
    </Loaded>
  )
}

interface VersionsProps {
  readonly agent: Agent
  readonly versions: readonly Summary[]
}

function VersionList({ agent, versions, current }: VersionsProps & { readonly current: number }) {
  const { version: named, with: other } = VERSIONS.value
  const shown = named ?? current
  const before = versions.find(({ version }) => version < shown)?.version
  const against = other ?? before ?? null
  return (
    <div class="agent-versions">
      <Table
        box="table-scroll"
        rows={versions}
        keyOf={({ version }) => version}
        link={({ version }) => ({
          href: hrefOf('agents', [agent.agent_id], {
            ...AGENT_LIST.write(AGENT_LIST.value),
            tab: 'versions',
            version: String(version),
          }),
          children: `Version ${version}`,
        })}
        isSelected={({ version }) => version === shown}
        columns={[
          { title: 'Version', cell: ({ version }) => version === agent.version && <small>current</small> },
          {
            title: 'Changed',
            cell: ({ restored_from, changes }) => (
              <>
                {restored_from !== null && <>restored from version {restored_from}: </>}
                {changes.length === 0 ? <span class="hint">first version</span> : changes.map(words).join(', ')}
              </>
            ),
          },
          { title: 'When', cell: ({ created_at }) => <Ago at={created_at} /> },
          { title: 'By', class: 'version-by', cell: (item) => <Author item={item} /> },
        ]}
      />
      <Comparison agent={agent} versions={versions} shown={shown} against={against} />
    </div>
  )
}

function Author({ item: { created_by, created_by_person } }: { readonly item: Summary }) {
  const keyName = useKeyNames()
  if (created_by === null) return <span class="hint">the service</span>
  return <>{created_by_person ?? keyName(created_by)}</>
}

interface ComparisonProps extends VersionsProps {
  readonly shown: number
  /** The version to compare with, if there is one. */
  readonly against: number | null
}

/** What differs between two versions, and a button to restore the shown one. */
function Comparison({ agent, versions, shown, against }: ComparisonProps) {
  const { api } = useSession()
  const read = useLoad(
    async (signal) => {
      const read = (version: number | null) =>
        version === null ? null : api.get<Version>(`/api/v1/agents/${agent.agent_id}/versions/${version}`, {}, signal)
      return Promise.all([read(shown), read(against)])
    },
    [agent.agent_id, shown, against],
  )
  const others = versions.filter(({ version }) => version !== shown)
  return (
    <section class="comparison" aria-label={`Version ${shown}`}>
      <div class="detail-head">
        <h3>Version {shown}</h3>
        {others.length > 0 && (
          <Select
            label="Compared with"
            value={String(against)}
            options={others.map(({ version }) => [String(version), `compared with version ${version}`] as const)}
            set={(version) => VERSIONS.set({ with: Number(version) })}
          />
        )}
        {shown !== agent.version && <Restore agent={agent} version={shown} />}
      </div>
      <Loaded read={read}>{([now, before]) => now && <Differences now={now} before={before} />}</Loaded>
    </section>
  )
}

type Field = Exclude<keyof Version, keyof Summary>

const FIELDS: readonly Field[] = [
  ...(['name', 'description', 'status', 'model', 'prompt', 'tools', 'output_schema'] as const),
  ...(['input_schema', 'expose', 'allow_input_requests'] as const),
  ...(['temperature', 'max_output_tokens', 'max_steps', 'timeout_seconds', 'budget_usd'] as const),
  ...(['stale_after_seconds', 'metadata'] as const),
]

/** Each field that differs; all fields that have a value if there is nothing to compare with. */
function Differences({ now, before }: { readonly now: Version; readonly before: Version | null }) {
  const parts = FIELDS.map(
    (field) => [field, before === null ? '' : textOf(before[field]), textOf(now[field])] as const,
  )
  const changed = parts.filter(([, was, is]) => was !== is)
  if (changed.length === 0) return <p class="hint">The configurations are the same.</p>
  return (
    <>
      {changed.map(([field, was, is]) => (
        <section key={field} class="text-block">
          <h4>{words(field)}</h4>
          {before === null ? (
            <Scrollable as="pre" label={words(field)}>
              {is}
            </Scrollable>
          ) : (
            <Diff before={was} after={is} />
          )}
        </section>
      ))}
    </>
  )
}

/** A value as it is compared: a text with its line breaks, anything else as JSON. */
function textOf(value: unknown): string {
  if (value === null || value === undefined) return 'not set'
  return typeof value === 'string' ? value : plain(value)
}

function Restore({ agent, version }: { readonly agent: Agent; readonly version: number }) {
  const { api, directory } = useSession()
  const restore = async () => {
    directory.put(await api.post<Agent>(`/api/v1/agents/${agent.agent_id}/versions/${version}/restore`, {}))
    VERSIONS.set({ version: null, with: null })
  }
  return (
    <ConfirmButton
      icon="retry"
      text="Restore this version"
      title={`Restore version ${version} of ${agent.name}?`}
      action="Restore"
      keep="Keep the current version"
      isSafe
      act={restore}
    >
      <p>
        Its configuration becomes version {agent.version + 1}, which new runs use. Runs that have started keep theirs.
        {agent.status === 'paused' && ' The agent stays paused.'}
      </p>
    </ConfirmButton>
  )
}
