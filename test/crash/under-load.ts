import { expect } from 'bun:test'
import { watchEach } from '../long/watching.ts'
import { type Api, newAgent } from '../support/api.ts'
import { eventually } from '../support/eventually.ts'
import type { Random } from '../support/random.ts'
import { expectAcknowledged, Reporting } from './reporting.ts'

export interface LoadedService {
  /** Of a process that answers now. */
  readonly api: () => Api
  readonly workspaceKey: string
  /** Clients report through all of them, and one feed begins at each. */
  readonly urls: readonly string[]
  readonly random: Random
}

/** Clients report and feeds follow while `causeLosses` runs; then everything is counted. */
export async function underLoad(
  { api, workspaceKey, urls, random }: LoadedService,
  causeLosses: (reporting: Reporting) => Promise<void>,
): Promise<void> {
  const { agentId, agentKey } = await newAgent(api())
  const watchers = await watchEach(urls, { workspaceKey, agentId })
  const reporting = new Reporting({ url: urls, agentId, agentKey, random, clients: 4 })
  await eventually(() => reporting.eventCount > 100)
  await causeLosses(reporting)
  const before = reporting.eventCount
  await eventually(() => reporting.eventCount > before + 100)
  await reporting.stop()
  await expectAcknowledged(api(), agentId, reporting)
  for (const watcher of watchers) {
    await eventually(() => watcher.eventCount >= reporting.eventCount)
    await watcher.stop()
    expect(watcher.failures.result).toEqual([])
    expect(watcher.eventCount).toBe(reporting.eventCount)
  }
}
