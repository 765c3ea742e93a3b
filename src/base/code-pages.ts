import { dlopen } from 'bun:ffi'
import { readFileSync } from 'node:fs'

const MADV_DONTNEED = 4
const CHECK_INTERVAL_MS = 5_000
/** The share of a processor that an idle process uses at most. */
const IDLE_SHARE_MAX = 0.1

/** Calls {@link releaseCode} some seconds after the start of this process, and each time when it becomes idle. */
export function releaseCodeWhenIdle(): void {
  let isFirst = true
  let wasBusy = false
  let before = process.cpuUsage()
  setInterval(() => {
    const { user, system } = process.cpuUsage(before)
    before = process.cpuUsage()
    const isBusy = (user + system) / 1_000 > CHECK_INTERVAL_MS * IDLE_SHARE_MAX
    if (isFirst || (wasBusy && !isBusy)) releaseCode()
    isFirst = false
    wasBusy = isBusy
  }, CHECK_INTERVAL_MS).unref()
}

/**
 * Releases code that only the start or the last load has used, and that would stay resident: registering the functions of
 * ClickHouse alone touches half of a library of 540 MB. Code that is needed again comes back from the page cache, 64 KiB
 * with each fault. Linux only.
 */
export function releaseCode(): void {
  if (process.platform !== 'linux') return
  try {
    const { symbols, close } = dlopen('libc.so.6', { madvise: { args: ['u64', 'u64', 'i32'], returns: 'i32' } })
    for (const [start, end] of unmodifiedFilePages(readFileSync('/proc/self/smaps', 'utf8')))
      symbols.madvise(start, end - start, MADV_DONTNEED)
    close()
  } catch {
    // Another C library: the code stays.
  }
}

/**
 * The address ranges of files that are mapped read only and were never written, not even by the loader: the addresses
 * that it has relocated are not in the file, and would be lost. Written pages count as anonymous, or as swapped out.
 *
 * @param smaps the text of `/proc/<pid>/smaps`
 */
export function unmodifiedFilePages(smaps: string): [start: bigint, end: bigint][] {
  const found: [bigint, bigint][] = []
  for (const entry of smaps.split(/\n(?=[0-9a-f]+-[0-9a-f]+ )/)) {
    const [, start, end] = /^([0-9a-f]+)-([0-9a-f]+) r-[x-]p \S+ \S+ \d+ +\//.exec(entry) ?? []
    if (start === undefined || !/^Anonymous: +0 kB$/m.test(entry) || !/^Swap: +0 kB$/m.test(entry)) continue
    found.push([BigInt(`0x${start}`), BigInt(`0x${end}`)])
  }
  return found
}
