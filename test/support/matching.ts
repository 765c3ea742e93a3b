import type { Activity } from '../../src/feeds/live/activity.ts'
import { Channels } from '../../src/feeds/live/channel.ts'
import { TimeSlice } from '../../src/feeds/live/fair-share.ts'
import type { Filter } from '../../src/feeds/live/filter.ts'
import { Matching } from '../../src/feeds/live/matching.ts'
import type { LookUpSessions } from '../../src/feeds/live/run-sessions.ts'
import type { Frame } from '../../src/stores/journal/journal.ts'

export interface MatchQuery {
  readonly epoch: string
  readonly afterSeq: number
  readonly workspaceId: string
  readonly filters: readonly Filter[]
  readonly slice?: TimeSlice
  readonly lookUpSessions?: LookUpSessions
  /** Called for each delivery, with its size. */
  readonly onHandOut?: (matches: number, throughSeq: number) => void
}

export const noSessions: LookUpSessions = async () => new Map()

/** The activities that feeds find in the frames for each of the filters. */
export async function matchAll(frames: readonly Frame[], query: MatchQuery): Promise<Activity[][]> {
  const {
    epoch,
    afterSeq,
    workspaceId,
    filters,
    slice = new TimeSlice(),
    lookUpSessions = noSessions,
    onHandOut,
  } = query
  const channels = new Channels(filters.length)
  const joined = filters.map((filter) => channels.join(workspaceId, filter))
  for (const channel of joined) channel.workspace.live.add(channel)
  const found = joined.map((): Activity[] => [])
  const matching = new Matching(frames, {
    ...{ epoch, afterSeq, slice },
    wantedOf(id) {
      return channels.of(id)?.live
    },
    async handOut(some, throughSeq) {
      let matches = 0
      for (const items of some.values()) matches += items.length
      onHandOut?.(matches, throughSeq)
      joined.forEach((channel, index) => void found[index]!.push(...(some.get(channel) ?? [])))
      return true
    },
  })
  await matching.lookUpSessions(lookUpSessions)
  await matching.run()
  return found
}
