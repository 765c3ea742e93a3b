import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The cleanup functions for everything that the tests of this process started or created. */
const pending: (() => Promise<unknown>)[] = []

/** Registers `end` to be called after all test files, in reverse order. */
export function atEnd(end: () => Promise<unknown>): void {
  pending.push(end)
}

/**
 * A value that several tests of a file share: created on first use, and dropped after everything has ended. With
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

/** Only for the preloaded file. One failing cleanup does not prevent the others. */
export async function endAll(): Promise<void> {
  const failures: unknown[] = []
  for (let end = pending.pop(); end !== undefined; end = pending.pop()) {
    await end().catch((error: unknown) => failures.push(error))
  }
  if (failures.length > 0) throw new AggregateError(failures, 'cleanup of the tests failed')
}

/** An empty directory that is removed after all tests. The user of Postgres may traverse it. */
export async function temporaryDirectory(parent = tmpdir()): Promise<string> {
  const path = await mkdtemp(join(parent, 'agent-run-service-test-'))
  await chmod(path, 0o711)
  atEnd(() => rm(path, { recursive: true, force: true }))
  return path
}
