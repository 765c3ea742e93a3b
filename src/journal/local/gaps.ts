import fs from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../../base/log.ts'
import type { Gap } from '../journal.ts'
import { GapList } from '../log/gaps.ts'
import { replaceFile } from './files.ts'

const NAME = 'gaps'

/** Opens the stored list of assigned positions whose rows are missing in the files. Each new gap is stored. */
export function openGaps(dir: string, log: Log): GapList {
  const path = join(dir, NAME)
  return new GapList(readGaps(dir, log), log, (_gap, all) => {
    try {
      replaceFile(path, JSON.stringify(all))
    } catch (error) {
      log.error('journal: cannot store a gap', { error })
    }
  })
}

/** Reads the stored list. */
export function readGaps(dir: string, log: Log): readonly Gap[] {
  const path = join(dir, NAME)
  if (!fs.existsSync(path)) return []
  try {
    return JSON.parse(fs.readFileSync(path, 'utf8'))
  } catch (error) {
    log.error('journal: cannot read the list of gaps; gaps within the files will be found again', {
      path,
      error,
    })
    return []
  }
}
