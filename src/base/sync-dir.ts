import { open } from 'node:fs/promises'

/** Syncs a directory, which makes the names of new files durable. */
export async function syncDir(dir: string): Promise<void> {
  const handle = await open(dir, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
