import { computed, effect, signal } from '@preact/signals'
import type { Session } from '../context/session.ts'
import type { PauseLine } from '../data/waiting.ts'

/** How many can be decided at once: the dialog shows the exact arguments of each. */
export const CHOSEN_MAX = 100

/**
 * The rows of the view. They stay where they are while the user reads: new ones wait until the user asks for them, and those
 * that were decided remain, with their outcome.
 */
export class WaitingList {
  readonly kept = signal<readonly PauseLine[]>([])
  /** Approvals to be decided together, by id. */
  readonly chosen = signal<ReadonlySet<string>>(new Set())
  /** How many pauses are new and not shown yet. */
  readonly newCount = computed(() => {
    const kept = new Set(this.kept.value.map(({ id }) => id))
    return this.session.waiting.pending.value.reduce((count, { id }) => count + (kept.has(id) ? 0 : 1), 0)
  })
  /** The button that gets the focus in the next card that opens. */
  wanted: 'approve' | 'reject' | null = null
  private readonly pendingIds = computed(() => new Set(this.session.waiting.pending.value.map(({ id }) => id)))

  constructor(private readonly session: Session) {
    const { pending } = session.waiting
    const stop = effect(() => {
      // Nothing can move in an empty list.
      if (pending.value.length > 0 && this.kept.peek().length === 0) this.showNew()
    })
    session.signal.addEventListener('abort', stop)
  }

  /** Called when the user opens the view. */
  async open(): Promise<void> {
    this.showNew()
    await this.session.waiting.pending.load()
    this.showNew()
  }

  /** Shows what waits now, and nothing else. */
  showNew(): void {
    this.kept.value = this.session.waiting.pending.value
    this.choose([...this.chosen.peek()].filter((id) => this.pendingIds.peek().has(id)))
  }

  /** `pending`, the outcome, or `gone`: decided elsewhere, with an outcome that is not known yet. */
  statusOf({ id, created_at }: PauseLine): string {
    const { known, pending, hasMore } = this.session.waiting
    const status = known.value.get(id)?.status ?? 'pending'
    if (status !== 'pending' || this.pendingIds.value.has(id)) return status
    // Pauses that are older than the listed ones may still wait.
    const last = pending.value.at(-1)
    return hasMore.value && last !== undefined && created_at <= last.created_at ? 'pending' : 'gone'
  }

  /** Whether it can be decided together with others: a question needs an answer of its own. */
  canChoose(line: PauseLine): boolean {
    return line.type === 'approval' && this.statusOf(line) === 'pending'
  }

  /** Chooses these ids, as many as can be decided at once. */
  choose(ids: readonly string[]): void {
    this.chosen.value = new Set(ids.slice(0, CHOSEN_MAX))
  }

  /** Chooses those of the lines that can be chosen, or none of them if all are chosen already. */
  toggle(lines: readonly PauseLine[]): void {
    const ids = lines.filter((line) => this.canChoose(line)).map(({ id }) => id)
    const { value: chosen } = this.chosen
    const isRemoved = ids.every((id) => chosen.has(id))
    this.choose(isRemoved ? [...chosen].filter((id) => !ids.includes(id)) : [...new Set([...chosen, ...ids])])
  }
}
