import { Elysia } from 'elysia'
import type { Guards } from '../keys/guards.ts'
import { AgentPage, AgentParams, AgentRecord, ArchivedAgent, CreateAgent, EditAgent, ListAgents } from './schema.ts'
import type { AgentStore } from './store.ts'

export interface AgentRoutesDeps {
  readonly guards: Guards
  readonly agents: AgentStore
}

const tags = ['Agents']

/** Agents of a workspace (docs/specification.md#agents). */
export function agentRoutes({ guards, agents }: AgentRoutesDeps) {
  return new Elysia({ prefix: '/api/v1/agents' })
    .use(guards.workspaceKey('reads'))
    .post('', ({ caller, body, mint }) => agents.create(caller, body, mint), {
      body: CreateAgent,
      response: AgentRecord,
      detail: { tags, summary: 'Create an agent' },
    })
    .get('', ({ caller, query }) => agents.list(caller, query), {
      query: ListAgents,
      response: AgentPage,
      detail: { tags, summary: 'List the agents of the workspace' },
    })
    .get('/:agentId', ({ caller, params }) => agents.get(caller, params.agentId), {
      params: AgentParams,
      response: AgentRecord,
      detail: { tags, summary: 'Read an agent' },
    })
    .patch('/:agentId', ({ caller, params, body }) => agents.edit(caller, params.agentId, body), {
      params: AgentParams,
      body: EditAgent,
      response: AgentRecord,
      detail: { tags, summary: 'Edit an agent' },
    })
    .delete('/:agentId', ({ caller, params }) => agents.archive(caller, params.agentId.toLowerCase()), {
      params: AgentParams,
      response: ArchivedAgent,
      detail: { tags, summary: 'Archive an agent: its keys die, its runs stay readable' },
    })
}
