import type { Trace } from '../faults.ts'
import { plant } from '../planted.ts'
import type { Case } from '../story.ts'
import type { Outcome } from '../world.ts'

const REAL_TIMERS = 'const { setTimeout, setImmediate, clearTimeout, clearImmediate } = globalThis\n'

/** Opens the real Postgres. Call while time is real, and nothing is loaded of what connects to it. */
export async function openDatabase() {
  // The driver keeps the timers that it finds now.
  const uid = 'let uid = 1'
  plant([{ path: '../node_modules/postgres/src/connection.js', text: uid, becomes: REAL_TIMERS + uid }])
  const { Server } = await import('./server.ts')
  const server = await Server.open()
  return {
    runWorld: async (tried: Case, trace: Trace): Promise<Outcome> => {
      const { runDatabaseWorld } = await import('./world.ts')
      return runDatabaseWorld(tried, trace, server)
    },
  }
}
