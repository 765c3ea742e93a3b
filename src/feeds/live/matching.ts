import { NIL_UUID, type RunIdentity, runKey } from '../../base/ids.ts'
import type { Frame, RunRows } from '../../stores/journal/journal.ts'
import { type ActivityKind, isActivity } from '../../stores/journal/kinds.ts'
import type { Activity } from './activity.ts'
import type { Channel, ChannelSet, WorkspaceChannels } from './channel.ts'
import type { TimeSlice } from './fair-share.ts'
import { type Filter, isBySession, matchesSession, matchesType } from './filter.ts'
import { Bits } from './filter-index.ts'
import { FrameRows } from './frame-rows.ts'
import { type LookUpSessions, NO_SESSION, type RunSession } from './run-sessions.ts'

/** The matches of each channel, in order. */
export type Found = ReadonlyMap<Channel, readonly Activity[]>

interface MatchingOptions {
  readonly epoch: string
  /** Rows up to this position are skipped. */
  readonly afterSeq: number
  readonly slice: TimeSlice
  /** The channels of a workspace that rows are matched for. Called again after each yield. */
  readonly wantedOf: (workspaceId: string) => ChannelSet | undefined
  /**
   * Delivers the matches between the previous call's `throughSeq` and this one's. Resolves to whether to continue.
   */
  readonly handOut: (found: Found, throughSeq: number) => Promise<boolean>
}

/** Rows and matches processed before the clock is read. One row may exceed this by the number of channels. */
export const WORK_PER_CHECK = 1_000
/** Up to this many filters are compared with each row directly, which costs less than index lookups. */
const FEW = 16
const NO_DETAILS = { ...NO_SESSION, tags: [] }
/** A workspace's sessions of runs that are kept from one call to the next. */
const SESSIONS_MAX = 10_000
/** Matches collected before they are delivered: bounds memory when a long frame matches many filters. */
export const MATCHES_MAX = 100_000

/**
 * Matches frames against many channels in one pass. A row that matches is decoded once; index lookups are shared by the rows
 * of a run that all filters treat alike. Yields to the event loop whenever the time slice is over.
 */
export class Matching {
  private readonly rows: readonly FrameRows[]
  private found = new Map<Channel, Activity[]>()
  private matches = 0
  private work = 0
  private readonly ofRun = new Bits()
  private readonly ofRow = new Bits()
  /** Scratch space, reused for each run. */
  private readonly few: Channel[] = []

  /** @param frames their memory may be reused after the first yield: {@link pause} copies what is still needed */
  constructor(
    frames: readonly Frame[],
    private readonly options: MatchingOptions,
  ) {
    this.rows = frames.map((frame) => new FrameRows(frame, options.epoch))
  }

  /**
   * Looks up the sessions of the frames' runs that are not known yet; if there are filters with conditions on them, it must
   * succeed before {@link run}.
   * @throws SessionsUnavailable
   */
  async lookUpSessions(lookUp: LookUpSessions): Promise<void> {
    const runs = this.unknownRuns()
    if (runs.length === 0) return
    for (const rows of this.rows) rows.detach()
    const found = await lookUp(runs)
    for (const { workspaceId, runId } of runs)
      this.options.wantedOf(workspaceId)?.sessions?.set(runId, found.get(runKey(workspaceId, runId)) ?? NO_SESSION)
  }

  /** Includes runs that have another session now: a row of the run itself tells. */
  private unknownRuns(): readonly RunIdentity[] {
    const unknown = new Map<string, RunIdentity>()
    const trimmed = new Set<object>()
    for (const rows of this.rows) {
      const { kind, runs } = rows.frame
      if (!isActivity(kind)) continue
      let to = 0
      for (const run of runs) {
        to += run.rows
        const known = this.options.wantedOf(run.workspaceId)?.sessions
        if (known === undefined || run.runId === NIL_UUID) continue
        if (known.size > SESSIONS_MAX && !trimmed.has(known)) known.clear()
        trimmed.add(known)
        const isKnown = kind === 'run' ? isCurrent(known.get(run.runId), rows, to - run.rows, to) : known.has(run.runId)
        if (!isKnown) unknown.set(runKey(run.workspaceId, run.runId), run)
      }
    }
    return [...unknown.values()]
  }

  /** Resolves when everything has been delivered, or `handOut` says to stop. */
  async run(): Promise<void> {
    let throughSeq = this.options.afterSeq
    for (const rows of this.rows) {
      const { firstSeq, runs } = rows.frame
      let from = 0
      for (const run of runs) {
        const to = from + run.rows
        let row = Math.max(from, this.options.afterSeq + 1 - firstSeq)
        while (row < to) {
          row = this.matchRun(rows, run, row, to)
          throughSeq = firstSeq + row - 1
          if (this.isTimeToPause && !(await this.pause(throughSeq))) return
        }
        from = to
      }
    }
    await this.handOut(throughSeq)
  }

  /** Matches rows of a run until it is time to check the clock. @returns the next row */
  private matchRun(rows: FrameRows, run: RunRows, from: number, to: number): number {
    this.work++
    const { kind } = rows.frame
    const wanted = this.options.wantedOf(run.workspaceId)
    if (wanted === undefined || !isActivity(kind)) return to
    const session = sessionOf(wanted, kind, run)
    if (wanted.members.size <= FEW) return this.matchFew(rows, kind, run, from, to, wanted.members, session)
    const { workspace } = wanted
    const { index } = workspace
    this.ofRun.assign(wanted.slots)
    const isWorkspaceEvent = run.runId === NIL_UUID
    if (isWorkspaceEvent) index.narrowToWorkspaceEvents(this.ofRun)
    else index.narrowToRun(this.ofRun, kind, run.agentId, run.runId)
    if (session !== undefined) index.narrowToSession(this.ofRun, session)
    if (this.ofRun.isEmpty) return to
    const isPerRow =
      !isWorkspaceEvent &&
      (this.ofRun.intersects(index.perRow) || (kind === 'run' && this.ofRun.intersects(index.perRun)))
    const listsOf = isPerRow ? this.perRow(rows, kind, workspace) : this.all(workspace)
    let row = from
    do {
      const lists = listsOf(row)
      this.work += 1 + lists.length
      if (lists.length > 0) {
        this.matches += lists.length
        const activity = rows.activity(row, run)
        for (const list of lists) list.push(activity)
      }
      row++
    } while (row < to && this.work < WORK_PER_CHECK)
    return row
  }

  /** Like {@link matchRun}, but compares each channel's filter with each row. */
  private matchFew(
    rows: FrameRows,
    kind: ActivityKind,
    run: RunRows,
    from: number,
    to: number,
    channels: ReadonlySet<Channel>,
    session: RunSession | undefined,
  ): number {
    const { few } = this
    few.length = 0
    const isWorkspaceEvent = run.runId === NIL_UUID
    for (const channel of channels) if (matchesRun(channel.filter, kind, run, session)) few.push(channel)
    if (few.length === 0) return to
    let row = from
    do {
      let activity: Activity | undefined
      for (const channel of few)
        if (isWorkspaceEvent || matchesRow(channel.filter, rows, kind, row)) {
          activity ??= rows.activity(row, run)
          this.listOf(channel).push(activity)
          this.matches++
        }
      this.work += 1 + few.length
      row++
    } while (row < to && this.work < WORK_PER_CHECK)
    return row
  }

  /** For filters without per-row conditions: all rows of the run match the same channels. */
  private all(channels: WorkspaceChannels): ListsOf {
    const lists = this.listsOf(channels, this.ofRun)
    return () => lists
  }

  /** Looks up each row's values; rows with the same values match the same channels. */
  private perRow(rows: FrameRows, kind: ActivityKind, channels: WorkspaceChannels): ListsOf {
    const { index } = channels
    const known = new Map<string, readonly Activity[][]>()
    const looksAtType = this.ofRun.intersects(index.perType)
    const looksAtTask = this.ofRun.intersects(index.perTask)
    const looksAtRun = this.ofRun.intersects(index.perRun)
    const lookUp = (key: string, narrow: () => void) => {
      let lists = known.get(key)
      if (lists === undefined) {
        this.ofRow.assign(this.ofRun)
        narrow()
        lists = this.listsOf(channels, this.ofRow)
        known.set(key, lists)
      }
      return lists
    }
    const taskOf = (row: number) => (looksAtTask ? rows.taskId(row) : null)
    switch (kind) {
      case 'run':
        return (row) => {
          const status = rows.status(row)
          const details = looksAtRun ? rows.run(row) : NO_DETAILS
          const { session_id, external_user_id, tags } = details
          const key = [status, session_id ?? '', external_user_id ?? '', ...tags].join('\0')
          return lookUp(key, () => index.narrowToState(this.ofRow, status, details, tags))
        }
      case 'task':
        return (row) => {
          const status = rows.status(row)
          const taskId = taskOf(row)
          return lookUp(`${status} ${taskId}`, () => index.narrowToTask(this.ofRow, status, taskId))
        }
      case 'score':
        return (row) => {
          const taskId = taskOf(row)
          return lookUp(taskId ?? '', () => index.narrowToScore(this.ofRow, taskId))
        }
      case 'event':
        return (row) => {
          const level = rows.level(row)
          const type = looksAtType ? rows.type(row) : ''
          const taskId = taskOf(row)
          return lookUp(`${level}${taskId ?? ''} ${type}`, () => index.narrowToEvent(this.ofRow, type, level, taskId))
        }
    }
  }

  /** The match lists of these channels. */
  private listsOf(channels: WorkspaceChannels, slots: Bits): Activity[][] {
    const lists: Activity[][] = []
    slots.forEach((slot) => {
      const channel = channels.at(slot)
      if (channel !== undefined) lists.push(this.listOf(channel))
    })
    return lists
  }

  private listOf(channel: Channel): Activity[] {
    let list = this.found.get(channel)
    if (list === undefined) {
      list = []
      this.found.set(channel, list)
    }
    return list
  }

  /** Checked synchronously: the frames' memory is safe as long as there is no yield. */
  private get isTimeToPause(): boolean {
    if (this.work < WORK_PER_CHECK) return false
    this.work = 0
    return this.matches >= MATCHES_MAX || this.options.slice.isOver
  }

  /** Delivers the matches if there are many, else just yields. @returns whether to continue */
  private async pause(throughSeq: number): Promise<boolean> {
    for (const rows of this.rows) if (rows.lastSeq > throughSeq) rows.detach()
    if (this.matches >= MATCHES_MAX) return this.handOut(throughSeq)
    await this.options.slice.yield()
    return true
  }

  private handOut(throughSeq: number): Promise<boolean> {
    const { found } = this
    this.found = new Map()
    this.matches = 0
    return this.options.handOut(found, throughSeq)
  }
}

type ListsOf = (row: number) => readonly Activity[][]

/** Whether this is what all these rows of a run say of its session. */
function isCurrent(known: RunSession | undefined, rows: FrameRows, from: number, to: number): boolean {
  if (known === undefined) return true
  for (let row = from; row < to; row++) {
    const { session_id, external_user_id } = rows.run(row)
    if (session_id !== known.session_id || external_user_id !== known.external_user_id) return false
  }
  return true
}

/** The session of the run, if a filter has a condition on it. Rows of runs have their own. */
function sessionOf({ sessions }: ChannelSet, kind: ActivityKind, { runId }: RunRows): RunSession | undefined {
  if (sessions === undefined || kind === 'run' || runId === NIL_UUID) return undefined
  const session = sessions.get(runId)
  if (session === undefined) throw new Error('the session of a run has not been looked up')
  return session
}

/** Whether rows of this kind and run can match at all. */
function matchesRun(filter: Filter, kind: ActivityKind, run: RunRows, session: RunSession | undefined): boolean {
  const { kinds, agentIds, runIds, workspaceEvents } = filter
  if (run.runId === NIL_UUID) return workspaceEvents === true
  return (
    kinds.has(kind) &&
    (agentIds === undefined || agentIds.has(run.agentId)) &&
    (runIds === undefined || runIds.has(run.runId)) &&
    (session === undefined || matchesSession(filter, session))
  )
}

/** The remaining conditions, for a row whose run passed {@link matchesRun}: those on fields that its kind has. */
function matchesRow(filter: Filter, rows: FrameRows, kind: ActivityKind, row: number): boolean {
  const { taskIds, types, level, statuses, tags } = filter
  switch (kind) {
    case 'event':
      if (level !== undefined && rows.level(row) < level) return false
      if (types !== undefined && !matchesType(types, rows.type(row))) return false
      return taskIds === undefined || taskIds.has(rows.taskId(row) ?? '')
    case 'score':
      return taskIds === undefined || taskIds.has(rows.taskId(row) ?? '')
    case 'task':
      if (statuses !== undefined && !statuses.has(rows.status(row))) return false
      return taskIds === undefined || taskIds.has(rows.taskId(row) ?? '')
    case 'run':
      if (statuses !== undefined && !statuses.has(rows.status(row))) return false
      if (isBySession(filter) && !matchesSession(filter, rows.run(row))) return false
      return tags === undefined || rows.run(row).tags.some((tag) => tags.has(tag))
  }
}
