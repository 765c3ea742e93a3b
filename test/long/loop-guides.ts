import { guides } from '../../src/openapi/guides.ts'
import { type LoopCase, sending } from './loop-case.ts'

const HOST_LENGTH = 15_000

/** The guides, which need no key: each is read and compressed by its first request (docs/api.md#calls-without-a-key). */
export const GUIDE_CASES: readonly LoopCase[] = [
  ...guides().map(({ path }) => ({
    name: 'the first request',
    request: () => sending('GET', path, undefined, { 'accept-encoding': 'zstd' }),
  })),
  ...[10, HOST_LENGTH].map((length) => ({
    name: `a new host of ${length} characters`,
    status: 'any' as const,
    request: () => {
      const host = crypto.randomUUID().slice(0, 8).padEnd(length, 'a')
      return sending('GET', '/llms.txt', undefined, { host, 'accept-encoding': 'zstd' })
    },
  })),
]
