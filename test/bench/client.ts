import { join } from 'node:path'
import { builtClient } from '../support/client-build.ts'
import type { Bench } from './parts.ts'
import { quiet } from './quiet.ts'
import { median, whole } from './report.ts'

const RUNS = [1, 10] as const
const EVENTS_PER_SECOND_TARGET = 100_000
const RESIDENT_MB_TARGET = 100
const BYTES_PER_MB = 1_000_000

interface Measured {
  readonly perSecond: number
  readonly microsPerEvent: number
  readonly residentMax: number
  readonly isComplete: boolean
}

/** Events from one Node process with the client library, acknowledged, and the memory that it takes. */
export async function measureClient({ service, report, rounds, seconds }: Bench): Promise<void> {
  report.heading('client: one Node process reports events of 350 bytes with the client library')
  const { agentId, key } = service.agents[0]!
  const env = { AGENT_RUN_URL: `http://127.0.0.1:${service.port}`, AGENT_RUN_KEY: key, AGENT_RUN_AGENT_ID: agentId }
  const module = await builtClient()
  for (const runs of RUNS) {
    const measured: Measured[] = []
    for (let round = 0; round < rounds; round++) {
      await quiet(service)
      measured.push(await load(module, seconds, runs, env))
    }
    const rate = median(measured.map(({ perSecond }) => perSecond))
    const micros = median(measured.map(({ microsPerEvent }) => microsPerEvent))
    const residentMb = Math.max(...measured.map(({ residentMax }) => residentMax)) / BYTES_PER_MB
    const name = runs === 1 ? 'one run' : `${runs} runs`
    report.line(`${name}: ${micros.toFixed(1)} µs of processor time an event`)
    const isFast = rate >= EVENTS_PER_SECOND_TARGET && measured.every(({ isComplete }) => isComplete)
    report.target(`${name}: ${whole(rate)} events/s, target ${whole(EVENTS_PER_SECOND_TARGET)}`, isFast)
    const resident = `${name}: at most ${whole(residentMb)} MB resident, target under ${RESIDENT_MB_TARGET}`
    report.target(resident, residentMb < RESIDENT_MB_TARGET)
  }
}

async function load(module: string, seconds: number, runs: number, env: Record<string, string>): Promise<Measured> {
  const command = ['node', join(import.meta.dir, 'client-load.mjs'), module, `${seconds}`, `${runs}`]
  const child = Bun.spawn(command, { env: { PATH: process.env.PATH ?? '', ...env }, stdout: 'pipe', stderr: 'inherit' })
  return JSON.parse(await new Response(child.stdout).text()) as Measured
}
