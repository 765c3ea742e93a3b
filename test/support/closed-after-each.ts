import { afterEach } from 'bun:test'

export interface Closable {
  close(): Promise<unknown>
}

/** Closes what is passed to the returned function, which returns it: after the test, the last one first. */
export function closedAfterEach() {
  const opened: Closable[] = []
  afterEach(async () => {
    for (let each = opened.pop(); each !== undefined; each = opened.pop()) await each.close()
  })
  return <T extends Closable>(each: T): T => {
    opened.push(each)
    return each
  }
}
