import { AgentParams } from '../../base/http/schema.ts'
import { ifMatch } from '../../base/http/version.ts'
import type { Guards } from '../../tenants/keys/guards.ts'
import { versionedRoutes } from '../../tenants/keys/versioned-routes.ts'
import { AgentPage, AgentRecord, ArchivedAgent, CreateAgent, EditAgent, ListAgents, RestoreAgent } from './schema.ts'
import type { AgentStore } from './store.ts'

/** Agents of a workspace (docs/agents.md). */
export function agentRoutes({ guards, agents }: { readonly guards: Guards; readonly agents: AgentStore }) {
  return versionedRoutes(guards, '/api/v1/agents', 'Agents')
    .post('', ({ caller, body, mint }) => agents.create(caller, body, mint), {
      body: CreateAgent,
      response: AgentRecord,
      detail: {
        operationId: 'createAgent',
        summary: 'Create an agent',
        description:
          'A hosted agent needs `model` and `prompt`; the service runs it. An external agent runs elsewhere and ' +
          'reports.',
        errors: ['CONFLICT'],
      },
    })
    .get('', ({ caller, query }) => agents.list(caller, query), {
      query: ListAgents,
      response: AgentPage,
      detail: {
        operationId: 'listAgents',
        summary: 'List the agents of the workspace',
        description:
          'Newest first. Archived agents are listed with `status=archived` only. Conditions are combined with AND.',
      },
    })
    .get('/:agent_id', ({ caller, params }) => agents.get(caller, params.agent_id), {
      params: AgentParams,
      response: AgentRecord,
      detail: {
        operationId: 'getAgent',
        summary: 'Read an agent',
        description: 'Its settings and status, also when it is archived.',
      },
    })
    .patch(
      '/:agent_id',
      ({ caller, params, body, request }) => agents.edit(caller, params.agent_id, body, ifMatch(request)),
      {
        params: AgentParams,
        body: EditAgent,
        response: AgentRecord,
        detail: {
          operationId: 'editAgent',
          summary: 'Edit an agent',
          description:
            'Changes the fields that are given; null clears a nullable field. Runs that have started keep the version ' +
            'that they started with.',
        },
      },
    )
    .delete(
      '/:agent_id',
      ({ caller, params, request }) => agents.archive(caller, params.agent_id.toLowerCase(), ifMatch(request)),
      {
        params: AgentParams,
        response: ArchivedAgent,
        detail: {
          operationId: 'archiveAgent',
          summary: 'Archive an agent',
          description: 'Its keys stop working and it can no longer run or report. Its runs stay readable.',
        },
      },
    )
    .post('/:agent_id/restore', ({ caller, params }) => agents.restore(caller, params.agent_id), {
      params: AgentParams,
      body: RestoreAgent,
      response: AgentRecord,
      detail: {
        operationId: 'restoreAgent',
        summary: 'Restore an archived agent',
        description:
          'It has the status that it had before; its keys stay revoked. CONFLICT if another agent has its name by now. ' +
          'Changes nothing if it is not archived.',
      },
    })
}
