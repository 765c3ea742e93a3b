import { AGENT_PEERS, measureAgents, measureKills } from './agents/agents.ts'
import { APPENDERS, measureAppends } from './append/append.ts'
import { COLLECTORS, measureCollectors } from './otlp/otlp.ts'
import type { PeerOptions, TableName } from './peer.ts'

const MEASURE: Readonly<Record<TableName, (options: PeerOptions) => Promise<void>>> = {
  append: measureAppends,
  agents: measureAgents,
  kills: measureKills,
  otlp: measureCollectors,
}

/** The names that `--peer` takes. */
export const PEER_NAMES = [...new Set([...APPENDERS, ...AGENT_PEERS, ...COLLECTORS].map(({ name }) => name))]

/** The service and systems that do a part of what it does, each alone on the machine, one after the other. */
export async function measurePeers(options: PeerOptions): Promise<void> {
  for (const table of options.tables) await MEASURE[table](options)
}
