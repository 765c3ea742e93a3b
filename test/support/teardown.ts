import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What is still running or lying around on behalf of the tests of this process. */
const pending: (() => Promise<unknown>)[] = []

/** Has `end` called when all test files are done, the latest first. */
export function atEnd(end: () => Promise<unknown>): void {
  pending.push(end)
}

/**
 * What several tests of a file share: made when it is first asked for, and forgotten once everything has ended. With
 * `--parallel`, that is after each file.
 */
export function shared<T>(make: () => T): () => T {
  let made: { value: T } | undefined
  return () => {
    if (made === undefined) {
      made = { value: make() }
      atEnd(async () => {
        made = undefined
      })
    }
    return made.value
  }
}

/** For the preloaded file only. One thing that cannot end does not keep the others from it. */
export async function endAll(): Promise<void> {
  const failures: unknown[] = []
  for (let end = pending.pop(); end !== undefined; end = pending.pop()) {
    await end().catch((error: unknown) => failures.push(error))
  }
  if (failures.length > 0) throw new AggregateError(failures, 'not everything that the tests started could be ended')
}

/** An empty directory that goes when all tests are done. Whoever Postgres runs as may pass through it. */
export async function temporaryDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'agent-run-service-test-'))
  await chmod(path, 0o711)
  atEnd(() => rm(path, { recursive: true, force: true }))
  return path
}
