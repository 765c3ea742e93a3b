import type { Api } from './api.ts'
import { type Pause, type PauseKind, readPause } from './pause.ts'

/** A pause that a link names. */
export interface NamedPause {
  readonly kind: PauseKind
  readonly id: string
}

/** Decided items that remain listed, so that the user sees the outcome. */
const DECIDED_SHOWN_MAX = 20

/** Items that the user opened by link, works on or has decided: they remain listed, with their outcome. */
export class WatchedPauses {
  /** The link names an item that does not exist. */
  isMissing = false
  private readonly items = new Map<string, Pause | NamedPause>()

  constructor(private readonly api: Api) {}

  add(pause: Pause): void {
    this.items.set(pause.id, pause)
  }

  /** Those that have been read. */
  known(): Pause[] {
    return [...this.items.values()].filter((pause) => 'status' in pause)
  }

  /** Keeps only what the user still works on, and watches the item that the link names. */
  open(named: NamedPause | null): void {
    for (const [id, pause] of this.items) if (!('status' in pause) || isDecided(pause)) this.items.delete(id)
    if (named !== null && !this.items.has(named.id)) this.items.set(named.id, named)
    this.isMissing = false
  }

  /** Reads watched items that are not in the list: they were decided, are older, or do not exist. */
  async update(listed: ReadonlyMap<string, Pause>): Promise<void> {
    for (const [id, { kind }] of this.items) {
      if (isDecided(this.items.get(id))) continue
      const pause = listed.get(id) ?? (await readPause(this.api, kind, id))
      // Decided by the user in the meantime.
      if (isDecided(this.items.get(id))) continue
      if (pause !== null) this.items.set(id, pause)
      else this.isMissing = this.items.delete(id)
    }
    const decided = [...this.items.keys()].filter((id) => isDecided(this.items.get(id)))
    for (const id of decided.slice(0, -DECIDED_SHOWN_MAX)) this.items.delete(id)
  }
}

function isDecided(pause: Pause | NamedPause | undefined): boolean {
  return pause !== undefined && 'status' in pause && pause.status !== 'pending'
}
