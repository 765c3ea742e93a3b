import { corruptJournals } from '../support/journal-corruption.ts'
import { hasNats } from '../support/nats.ts'
import { corruptStreams } from '../support/stream-corruption.ts'
import type { Campaign } from './campaign.ts'

const ROUNDS_PER_STEP = 500

/** Random damage to journal files and streams: intact frames survive, nothing is forged, no position is reused. */
export const corruption: Campaign = {
  describe: 'damages journal files and streams at random and reopens the journal',
  rounds: 10_000,
  shortRounds: 500,
  async run({ random, rounds, progress }) {
    const failures: string[] = []
    let done = 0
    while (done < rounds && failures.length === 0) {
      const step = Math.min(ROUNDS_PER_STEP, rounds - done)
      await corruptJournals(random, step).catch((error: Error) => failures.push(`after ${done}: ${error.message}`))
      done += step
      progress(`${done} of ${rounds} corruptions`)
    }
    // These take longer, and need a server.
    const streams = hasNats ? Math.ceil(rounds / 10) : 0
    if (failures.length === 0 && streams > 0) {
      await corruptStreams(random, streams).catch((error: Error) => failures.push(error.message))
    }
    return { figures: { corruptions: done, 'of streams': streams }, failures }
  },
}
