import { corruptJournals } from '../support/journal-corruption.ts'
import type { Campaign } from './campaign.ts'

const ROUNDS_PER_STEP = 500

/** Random damage to journal files: intact frames survive, nothing is forged, no position is reused. */
export const corruption: Campaign = {
  describe: 'damages journal files at random and reopens the journal',
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
    return { figures: { corruptions: done }, failures }
  },
}
