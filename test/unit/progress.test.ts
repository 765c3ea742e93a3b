import { expect, test } from 'bun:test'
import { createLog } from '../../src/base/log.ts'
import { createProgressLine } from '../../src/base/progress.ts'

test('on a terminal, everything in progress shares one line, which disappears at the end', async () => {
  let shown = ''
  const progress = createProgressLine({ write: (text) => (shown += text), columns: () => 40 })
  /** The current content of the line. */
  const line = () => shown.split('\r\x1b[K').at(-1)
  const first = Promise.withResolvers<void>()
  const second = Promise.withResolvers<void>()
  const one = progress.during('starting one', async (say) => {
    say('creating one')
    await first.promise
  })
  const two = progress.during('starting another with a long name', () => second.promise)
  expect(line()).toBe('  creating one, starting another with a')
  second.resolve()
  await two
  expect(line()).toBe('  creating one … ')
  first.resolve()
  await one
  expect(line()).toBe('')
  expect(shown).not.toContain('\n')
})

test('the text log for people cannot contain terminal control sequences', () => {
  const lines: string[] = []
  const log = createLog('info', (line) => lines.push(line), 'text')
  log.info('started', { pid: 12, url: 'http://127.0.0.1:3000', words: 'two words', odd: '\x1b[2J', of: { a: 1 } })
  log.error('it \x1b[31mfailed', { error: new Error('no\nsuch thing') })
  log.debug('not asked for')
  expect(lines[0]).toMatch(
    /^\d\d:\d\d:\d\d\.\d{3} info {2}started pid=12 url=http:\/\/127\.0\.0\.1:3000 words="two words" odd="\\u001b\[2J" of=\{"a":1\}\n$/,
  )
  expect(lines[1]).toMatch(/^\S+ error it \\u001b\[31mfailed error="no\\nsuch thing"\n( {4}at [^\n]+\n)+$/)
  expect(lines).toHaveLength(2)
})
