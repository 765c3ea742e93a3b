import { npmPackages } from '../install.ts'
import type { AgentPeer } from './agent-peer.ts'
import { routesOf, startOnPostgres } from './node-program.ts'

const VERSION = '5.3.0'

export const dbos: AgentPeer = {
  name: 'dbos',
  async start(world, cache) {
    const packages = await npmPackages(cache, { '@dbos-inc/dbos-sdk': VERSION })
    const program = await startOnPostgres({ packages, world, files: ['dbos.mjs', 'routes.mjs', 'steps.mjs'] })
    const { proceed: _, ...routes } = routesOf(program)
    return {
      ...routes,
      title: `DBOS ${VERSION}`,
      configuration: 'workflow in one Node process; Postgres 18.4, a synced commit for each step',
      promise:
        'a completed step is not repeated; an interrupted one is: steps are at least once and should be idempotent',
      kill: program.kill,
      restart: program.restart,
      stop: program.stop,
    }
  },
}
