import { runTests, SLOW } from '../support/run-tests.ts'
import type { Campaign } from './campaign.ts'

/** The tests that `bun run test` leaves out. */
export const slow: Campaign = {
  describe: 'the tests that wait in real time, start programs, kill stores or drive a browser; --rounds repeats them',
  rounds: 1,
  shortRounds: 1,
  async run({ rounds }) {
    const failures: string[] = []
    for (let round = 1; round <= rounds; round++) {
      const exitCode = await runTests([SLOW])
      if (exitCode !== 0) failures.push(`round ${round}: bun test exited with ${exitCode}; its output names the tests`)
    }
    return { figures: { rounds }, failures }
  },
}
