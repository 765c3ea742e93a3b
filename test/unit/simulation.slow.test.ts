import { expect, test } from 'bun:test'
import { basename } from 'node:path'
import { PLANTED } from '../sim/planted.ts'
import { find, STORIES, simulate } from '../sim/simulate.ts'
import type { Story } from '../sim/story.ts'

test.each(Object.keys(PLANTED))('the simulation finds a planted bug: %s', async (bug) => {
  expect(await find(bug)).toEqual([true, expect.any(String)])
})

test.each(STORIES.map((file) => [basename(file), file]))(
  'a story fails with the bug that it tells of: %s',
  async (_, file) => {
    const { plant, failed }: Story = await Bun.file(file).json()
    const { stdout, code } = await simulate('--story', file)
    expect([code, stdout]).toEqual([plant === undefined ? 0 : 1, expect.any(String)])
    if (plant !== undefined) expect(stdout.split('\n')).toEqual(expect.arrayContaining([...failed]))
  },
)
