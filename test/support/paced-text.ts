import type { Turn } from './model-server.ts'

/** An answer of the model that goes on only as far as the test allows. */
export interface PacedText {
  readonly turn: Turn
  /** Lets the model write the first `pieces` pieces. */
  allow(pieces: number): void
  /** Lets the model finish. */
  finish(): void
}

export function pacedText(text: readonly string[], more: Turn = {}): PacedText {
  let allowed = 0
  let changed = Promise.withResolvers<void>()
  const allow = (pieces: number) => {
    allowed = pieces
    changed.resolve()
    changed = Promise.withResolvers()
  }
  return {
    turn: {
      ...more,
      text,
      // The first event has only the role, so piece n is event n + 1.
      async after(sent) {
        while (sent > allowed) await changed.promise
      },
    },
    allow,
    finish: () => allow(Number.POSITIVE_INFINITY),
  }
}
