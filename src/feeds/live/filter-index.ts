import { Counts } from '../../base/counts.ts'
import type { ActivityKind } from '../../stores/journal/kinds.ts'
import { LEVELS } from '../../stores/journal/levels.ts'
import { type Filter, isBySession } from './filter.ts'
import type { RunSession } from './run-sessions.ts'

/**
 * An inverted index that finds which of many filters match a row. Each filter has a slot, a small number. Each field knows
 * the slots without a condition on it and, by value, the slots that match the value; the filters that match are the
 * intersection over all fields. A row thus costs one bit per filter instead of a comparison with each.
 */
export class FilterIndex {
  private readonly free: number[] = []
  private slots = 0
  private readonly kinds: Readonly<Record<ActivityKind, Bits>> = {
    event: new Bits(),
    task: new Bits(),
    run: new Bits(),
    score: new Bits(),
  }
  private readonly agents = new ValueIndex()
  private readonly runs = new ValueIndex()
  /** Complete types, and prefixes, which end in `*`. */
  private readonly types = new ValueIndex()
  /** The number of prefixes by length: a type is looked up once per length in use. */
  private readonly prefixes = new Counts<number>()
  /** By level, from 1: the slots that match an event of this level. */
  private readonly levels = [new Bits(), ...LEVELS.map(() => new Bits())]
  private readonly statuses = new ValueIndex()
  private readonly tasks = new ValueIndex()
  private readonly sessions = new ValueIndex()
  private readonly externalUsers = new ValueIndex()
  private readonly tags = new ValueIndex()
  /** The slots with conditions on values that differ between the rows of a run, other than {@link perRun}. */
  readonly perRow = new Bits()
  /** The slots with a condition on the type. */
  readonly perType = new Bits()
  /** The slots with a condition on the task. */
  readonly perTask = new Bits()
  /** The slots with a condition on the session, external user or tags of a run, which differ between rows of kind `run`. */
  readonly perRun = new Bits()
  /** The slots that select workspace events. */
  private readonly workspaceEvents = new Bits()

  /** @returns the filter's slot */
  add(filter: Filter): number {
    const slot = this.free.pop() ?? this.slots++
    for (const kind of filter.kinds) this.kinds[kind].add(slot)
    for (let level = filter.level ?? 1; level < this.levels.length; level++) this.levels[level].add(slot)
    for (const [index, values] of this.fieldsOf(filter)) index.add(slot, values)
    const { types, level, statuses, taskIds, tags } = filter
    this.countPrefixes(types, 1)
    if (filter.workspaceEvents) this.workspaceEvents.add(slot)
    if (types !== undefined) this.perType.add(slot)
    if (taskIds !== undefined) this.perTask.add(slot)
    if (isBySession(filter) || tags !== undefined) this.perRun.add(slot)
    if ([types, level, statuses, taskIds].some((condition) => condition !== undefined)) this.perRow.add(slot)
    return slot
  }

  /** The inverse of {@link add}. The slot may be reused for another filter. */
  remove(filter: Filter, slot: number): void {
    for (const kind of filter.kinds) this.kinds[kind].delete(slot)
    for (const level of this.levels) level.delete(slot)
    for (const [index, values] of this.fieldsOf(filter)) index.remove(slot, values)
    this.countPrefixes(filter.types, -1)
    for (const bits of [this.perRow, this.perType, this.perTask, this.perRun, this.workspaceEvents]) bits.delete(slot)
    this.free.push(slot)
  }

  /** Keeps the slots that can match rows of this kind, agent and run. */
  narrowToRun(slots: Bits, kind: ActivityKind, agentId: string, runId: string): void {
    slots.intersect(this.kinds[kind])
    this.agents.narrow(slots, [agentId])
    this.runs.narrow(slots, [runId])
  }

  /** Keeps the slots that match a run of this session and external user. */
  narrowToSession(slots: Bits, { session_id, external_user_id }: RunSession): void {
    this.sessions.narrow(slots, listOf(session_id))
    this.externalUsers.narrow(slots, listOf(external_user_id))
  }

  /** Keeps the slots that match workspace events. */
  narrowToWorkspaceEvents(slots: Bits): void {
    slots.intersect(this.workspaceEvents)
  }

  /** Keeps the slots that match an event of this type, level and task. */
  narrowToEvent(slots: Bits, type: string, level: number, taskId: string | null): void {
    slots.intersect(this.levels[level])
    this.tasks.narrow(slots, listOf(taskId))
    const matching = [type]
    for (const length of this.prefixes.keys()) if (length <= type.length) matching.push(`${type.slice(0, length)}*`)
    this.types.narrow(slots, matching)
  }

  /** Keeps the slots that match a score of this task. */
  narrowToScore(slots: Bits, taskId: string | null): void {
    this.tasks.narrow(slots, listOf(taskId))
  }

  /** Keeps the slots that match a task of this status. */
  narrowToTask(slots: Bits, status: string, taskId: string | null): void {
    this.statuses.narrow(slots, [status])
    this.tasks.narrow(slots, listOf(taskId))
  }

  /** Keeps the slots that match a run of this status, with this session and these tags. */
  narrowToState(slots: Bits, status: string, session: RunSession, tags: readonly string[]): void {
    this.statuses.narrow(slots, [status])
    this.narrowToSession(slots, session)
    this.tags.narrow(slots, tags)
  }

  private countPrefixes(types: readonly string[] = [], change: 1 | -1): void {
    for (const type of types) if (type.endsWith('*')) this.prefixes.add(type.length - 1, change)
  }

  private fieldsOf(filter: Filter): readonly [ValueIndex, Iterable<string> | undefined][] {
    const { agentIds, runIds, types, statuses, taskIds, sessionIds, externalUserIds, tags } = filter
    return [
      [this.agents, agentIds],
      [this.runs, runIds],
      [this.types, types],
      [this.statuses, statuses],
      [this.tasks, taskIds],
      [this.sessions, sessionIds],
      [this.externalUsers, externalUserIds],
      [this.tags, tags],
    ]
  }
}

function listOf(value: string | null): readonly string[] {
  return value === null ? [] : [value]
}

/** One field: the slots that match any value, and those that match certain values. */
class ValueIndex {
  private readonly any = new Bits()
  private readonly slots = new Map<string, Set<number>>()
  private readonly passing = new Bits()

  /** @param values undefined matches any value */
  add(slot: number, values: Iterable<string> | undefined): void {
    if (values === undefined) this.any.add(slot)
    else
      for (const value of values) {
        const known = this.slots.get(value)
        if (known === undefined) this.slots.set(value, new Set([slot]))
        else known.add(slot)
      }
  }

  remove(slot: number, values: Iterable<string> | undefined): void {
    if (values === undefined) this.any.delete(slot)
    else
      for (const value of values) {
        const known = this.slots.get(value)
        known?.delete(slot)
        if (known?.size === 0) this.slots.delete(value)
      }
  }

  /** Keeps the slots that match one of the values. */
  narrow(slots: Bits, values: readonly string[]): void {
    const { any, passing } = this
    if (this.slots.size === 0) {
      slots.intersect(any)
      return
    }
    passing.assign(any)
    for (const value of values) {
      const known = this.slots.get(value)
      if (known !== undefined) for (const slot of known) passing.add(slot)
    }
    slots.intersect(passing)
  }
}

/** A bit set of small integers; set operations process 32 members at a time. */
export class Bits {
  private words = new Uint32Array(1)

  add(member: number): void {
    const word = member >>> 5
    if (word >= this.words.length) this.grow(Math.max(word + 1, this.words.length * 2))
    this.words[word] |= 1 << (member & 31)
  }

  delete(member: number): void {
    const word = member >>> 5
    if (word < this.words.length) this.words[word] &= ~(1 << (member & 31))
  }

  /** Makes this set equal to `other`. */
  assign({ words }: Bits): void {
    if (words.length > this.words.length) this.words = words.slice()
    else {
      this.words.set(words)
      this.words.fill(0, words.length)
    }
  }

  /** Keeps only the members that `other` has too. */
  intersect({ words }: Bits): void {
    const length = Math.min(this.words.length, words.length)
    for (let i = 0; i < length; i++) this.words[i] &= words[i]
    this.words.fill(0, length)
  }

  intersects({ words }: Bits): boolean {
    const length = Math.min(this.words.length, words.length)
    for (let i = 0; i < length; i++) if ((this.words[i] & words[i]) !== 0) return true
    return false
  }

  get isEmpty(): boolean {
    for (const word of this.words) if (word !== 0) return false
    return true
  }

  /** In ascending order. */
  forEach(visit: (member: number) => void): void {
    for (let i = 0; i < this.words.length; i++)
      for (let rest = this.words[i]; rest !== 0; rest &= rest - 1) visit(i * 32 + 31 - Math.clz32(rest & -rest))
  }

  private grow(length: number): void {
    const words = new Uint32Array(length)
    words.set(this.words)
    this.words = words
  }
}
