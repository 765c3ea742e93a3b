import { Elysia } from 'elysia'
import { AgentParams, PageQuery } from '../../base/http/schema.ts'
import { VERSIONED, versioned } from '../../base/http/version.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import { SECURITY } from '../../tenants/keys/security.ts'
import { AgentRecord } from './schema.ts'
import { AgentVersion, AgentVersionPage, RestoreVersion, VersionParams } from './version-schema.ts'
import type { AgentVersions } from './versions.ts'

interface VersionRoutesDeps {
  readonly guards: Guards
  readonly versions: AgentVersions
}

/** Versions of agents (docs/agents.md#agent-versions). */
export function agentVersionRoutes({ guards, versions }: VersionRoutesDeps) {
  return new Elysia({
    prefix: '/api/v1/agents/:agent_id/versions',
    detail: { tags: ['Agents'], security: SECURITY.workspaceKey, ...VERSIONED },
  })
    .use(guards.workspaceKey('reads', 'admin'))
    .use(versioned)
    .get('', ({ caller, params, query }) => versions.list(caller, params.agent_id, query), {
      params: AgentParams,
      query: PageQuery,
      response: AgentVersionPage,
      detail: {
        operationId: 'listAgentVersions',
        summary: 'List the versions of an agent',
        description:
          'Newest first, without their configurations. The newest 200 are kept, whether or not runs of them exist.',
      },
    })
    .get('/:version', ({ caller, params }) => versions.get(caller, params.agent_id, params.version), {
      params: VersionParams,
      response: AgentVersion,
      detail: {
        operationId: 'getAgentVersion',
        summary: 'Read a version of an agent',
        description: 'Its whole configuration. `agent_version` of a run is the version that it ran.',
      },
    })
    .post('/:version/restore', ({ caller, params }) => versions.restore(caller, params.agent_id, params.version), {
      params: VersionParams,
      body: RestoreVersion,
      response: AgentRecord,
      detail: {
        operationId: 'restoreAgentVersion',
        summary: 'Restore a version of an agent',
        description:
          'Makes its configuration a new version and returns the agent. The status stays. Changes nothing if the agent ' +
          'already has this configuration.',
        errors: ['CONFLICT'],
      },
    })
}
