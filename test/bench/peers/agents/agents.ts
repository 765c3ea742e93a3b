import { median, ms, whole } from '../../report.ts'
import { eachPeer, markdown, type PeerOptions } from '../peer.ts'
import { type AgentPeer, type AgentSystem, startWorld } from './agent-peer.ts'
import { type KillTally, killRuns } from './kills.ts'
import { dbos } from './dbos.ts'
import { langgraph, langgraphServer } from './langgraph.ts'
import { mastra } from './mastra.ts'
import { restate } from './restate.ts'
import { service } from './service.ts'
import { type Throughput, throughputOf } from './throughput.ts'

export const AGENT_PEERS: readonly AgentPeer[] = [service, restate, dbos, langgraph, langgraphServer, mastra]

const SPEED = ['system', 'runs/s', 'p50', 'p99', 'durability']
const KILLS = [
  ...['system', 'kills', 'runs killed', 'completed', 'failed', 'stuck', 'forgotten'],
  ...['tool calls repeated, same key', 'repeated, other key', 'lost', 'restart', 'what its documentation promises'],
]

/** Runs of the same agent: how many, and what a `kill -9` does to them. */
export async function measureAgents(options: PeerOptions): Promise<void> {
  const { report, directory, rounds, seconds, kills } = options
  report.heading('peers: runs of an agent: model, tool, model, approval, tool, model')
  const world = await startWorld()
  const speed: string[][] = []
  const killed: string[][] = []
  await eachPeer(options, AGENT_PEERS, async (peer) => {
    const system = await peer.start(world, directory)
    try {
      if (rounds > 0) {
        speed.push(speedRow(system, await throughputOf(system, seconds, rounds)))
        report.line(speed.at(-1)!.join(' · '))
      }
      if (kills > 0) {
        killed.push(killRow(system, await killRuns(system, world, kills)))
        report.line(killed.at(-1)!.join(' · '))
      }
    } finally {
      await system.stop()
    }
  })
  for (const line of markdown(SPEED, speed).split('\n')) report.line(line)
  report.line('')
  for (const line of markdown(KILLS, killed).split('\n')) report.line(line)
}

function speedRow({ title, configuration }: AgentSystem, { runsPerSecond, p50, p99 }: Throughput): string[] {
  return [title, runsPerSecond < 10 ? runsPerSecond.toFixed(1) : whole(runsPerSecond), ms(p50), ms(p99), configuration]
}

function killRow({ title, promise }: AgentSystem, tally: KillTally): string[] {
  const { kills, runs, completed, failed, stuck, forgotten, repeatedSameKey, repeatedOtherKey, lost } = tally
  const figures = [kills, runs, completed, failed, stuck, forgotten, repeatedSameKey, repeatedOtherKey, lost]
  return [title, ...figures.map(whole), ms(median(tally.restartMs)), promise]
}
