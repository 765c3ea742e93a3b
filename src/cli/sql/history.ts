import { appendFile, chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Statements of this and earlier prompts, newest first, for readline. */
export interface History {
  readonly entries: readonly string[]
  /** @param entry a single line */
  add(entry: string): Promise<void>
}

const ENTRIES_MAX = 1_000
const ENTRY_LENGTH_MAX = 10_000

/** The file in the user's state directory (XDG Base Directory Specification); null for a user without a home directory. */
export function historyPath(env: Readonly<Record<string, string | undefined>>): string | null {
  const state = env.XDG_STATE_HOME || (env.HOME ? join(env.HOME, '.local', 'state') : '')
  return state === '' ? null : join(state, 'agent-run-service', 'sql_history')
}

/**
 * Reads the history file, and truncates it if it is too long. Entries are appended immediately, so that a killed prompt
 * loses none and two prompts at once can share the file.
 *
 * @param path null: the history ends with the prompt
 * @param note called once if the file cannot be used
 */
export async function openHistory(path: string | null, note: (problem: string) => void): Promise<History> {
  const entries: string[] = []
  let file = path
  const attempt = async (work: (path: string) => Promise<void>) => {
    if (file === null) return
    try {
      await work(file)
    } catch (error) {
      note(`the history cannot be saved in ${file}: ${error instanceof Error ? error.message : error}`)
      file = null
    }
  }
  await attempt(async (path) => {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    // Statements may contain confidential values.
    await appendFile(path, '', { mode: 0o600 })
    await chmod(path, 0o600)
    const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => line !== '')
    entries.push(...lines.slice(-ENTRIES_MAX).reverse())
    if (lines.length > ENTRIES_MAX) await replace(path, lines.slice(-ENTRIES_MAX))
  })
  return {
    entries,
    async add(entry) {
      if (entry.length > ENTRY_LENGTH_MAX || entry === entries[0]) return
      entries.unshift(entry)
      entries.splice(ENTRIES_MAX)
      await attempt((path) => appendFile(path, `${entry}\n`, { mode: 0o600 }))
    },
  }
}

async function replace(path: string, lines: readonly string[]): Promise<void> {
  const next = `${path}.${process.pid}`
  await writeFile(next, `${lines.join('\n')}\n`, { mode: 0o600 })
  await rename(next, path)
}
