import { expect, test } from 'bun:test'
import { unmodifiedFilePages } from '../../src/base/code-pages.ts'

/** An entry of `/proc/<pid>/smaps`. */
function entry(range: string, permissions: string, file: string, anonymousKiB: number, swapKiB = 0): string {
  return `${range} ${permissions} 00001000 fe:00 77 ${file}
Size:                 64 kB
Rss:                  64 kB
Anonymous:      ${String(anonymousKiB).padStart(8)} kB
Swap:           ${String(swapKiB).padStart(8)} kB
VmFlags: rd mr mw me
`
}

test('only read-only pages that equal their file may be dropped from memory', () => {
  const smaps = [
    entry('1000-2000', 'r-xp', '                  /opt/lib with space.so', 0),
    entry('2000-3000', 'r--p', '                  /opt/lib.so', 0),
    // Addresses that the loader has relocated: their pages are not in the file.
    entry('3000-4000', 'r--p', '                  /opt/lib.so', 12),
    entry('3800-4000', 'r--p', '                  /opt/lib.so', 0, 12),
    entry('4000-5000', 'rw-p', '                  /opt/lib.so', 0),
    entry('5000-6000', 'rwxp', '', 64),
    entry('6000-7000', 'r--p', '', 0),
    entry('7000-8000', 'r-xp', '                  [vdso]', 0),
    entry('8000-9000', 'r--s', '                  /opt/shared', 0),
    entry('7f0000000000-7f0000001000', 'r-xp', '                  /opt/program', 0),
  ].join('')
  expect(unmodifiedFilePages(smaps)).toEqual([
    [0x1000n, 0x2000n],
    [0x2000n, 0x3000n],
    [0x7f0000000000n, 0x7f0000001000n],
  ])
})
