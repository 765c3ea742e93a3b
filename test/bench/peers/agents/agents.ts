import { median, ms, whole } from '../../report.ts'
import { eachPeer, markdown, type PeerOptions } from '../peer.ts'
import { type AgentPeer, type AgentSystem, startWorld, type World } from './agent-peer.ts'
import { dbos } from './dbos.ts'
import { type KillTally, killRuns } from './kills.ts'
import { langgraph, langgraphServer } from './langgraph.ts'
import { mastra } from './mastra.ts'
import { restate } from './restate.ts'
import { service } from './service.ts'
import { AGENT_CALLERS, type Throughput, throughputOf } from './throughput.ts'

export const AGENT_PEERS: readonly AgentPeer[] = [service, restate, dbos, langgraph, langgraphServer, mastra]

const SCRIPT = 'model, tool, model, approval, tool, model'
const SPEED = ['system', 'runs/s', 'p50', 'p99', 'durability']
const KILLS = [
  ...['system', 'kills', 'runs killed', 'completed', 'failed', 'stuck', 'forgotten'],
  ...['tool calls repeated, same key', 'repeated, other key', 'lost', 'restart', 'what its documentation promises'],
]

/** Runs of the same agent, by concurrent callers. */
export async function measureAgents(options: PeerOptions): Promise<void> {
  options.report.heading(`peers: runs of an agent, ${AGENT_CALLERS} callers: ${SCRIPT}`)
  await tableOf(options, SPEED, async (system) =>
    speedRow(system, await throughputOf(system, options.seconds, options.rounds)),
  )
}

/** What a `kill -9` at a random moment does to runs of that agent. */
export async function measureKills(options: PeerOptions): Promise<void> {
  options.report.heading(`peers: kill -9 at a random moment of a run: ${SCRIPT}`)
  await tableOf(options, KILLS, async (system, world) => {
    const rowOf = (tally: KillTally) => killRow(system, tally)
    const show = (soFar: KillTally) => options.report.line(`so far: ${rowOf(soFar).slice(0, -1).join(' · ')}`)
    return rowOf(await killRuns(system, world, options.kills, show))
  })
}

async function tableOf(
  options: PeerOptions,
  header: readonly string[],
  rowOf: (system: AgentSystem, world: World) => Promise<string[]>,
): Promise<void> {
  const { report, directory } = options
  const world = await startWorld()
  const rows: string[][] = []
  await eachPeer(options, AGENT_PEERS, async (peer) => {
    const system = await peer.start(world, directory)
    try {
      rows.push(await rowOf(system, world))
    } finally {
      await system.stop()
    }
    report.line(rows.at(-1)!.join(' · '))
  })
  for (const line of markdown(header, rows).split('\n')) report.line(line)
}

function speedRow({ title, configuration }: AgentSystem, { runsPerSecond, p50, p99 }: Throughput): string[] {
  return [title, runsPerSecond < 10 ? runsPerSecond.toFixed(1) : whole(runsPerSecond), ms(p50), ms(p99), configuration]
}

function killRow({ title, promise }: AgentSystem, tally: KillTally): string[] {
  const { kills, runs, completed, failed, stuck, forgotten, repeatedSameKey, repeatedOtherKey, lost } = tally
  const figures = [kills, runs, completed, failed, stuck, forgotten, repeatedSameKey, repeatedOtherKey, lost]
  return [title, ...figures.map(whole), ms(median(tally.restartMs)), promise]
}
