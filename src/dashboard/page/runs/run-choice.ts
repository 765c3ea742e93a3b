import { signal } from '@preact/signals'

/** The runs of the list that the user has chosen, to compare or cancel them. */
export class RunChoice {
  readonly ids = signal<ReadonlySet<string>>(new Set())

  has(runId: string): boolean {
    return this.ids.value.has(runId)
  }

  toggle(runId: string): void {
    const ids = new Set(this.ids.peek())
    if (!ids.delete(runId)) ids.add(runId)
    this.ids.value = ids
  }

  set(runIds: readonly string[]): void {
    this.ids.value = new Set(runIds)
  }

  clear(): void {
    if (this.ids.peek().size > 0) this.ids.value = new Set()
  }
}
