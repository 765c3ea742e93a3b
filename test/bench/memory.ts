/** Resident memory of a process and its descendants. Shared pages are counted in each process. */
export async function memoryOf(pid: number): Promise<{ residentMiB: number; processes: number }> {
  const listing = await Bun.$`ps -A -o pid=,ppid=,rss=`.text()
  const rows = listing
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number) as [pid: number, parent: number, rssKiB: number])
  const pids = new Set([pid])
  // A parent may be listed after its child, so repeat until nothing is added.
  for (let size = 0; size < pids.size; ) {
    size = pids.size
    for (const [child, parent] of rows) if (pids.has(parent)) pids.add(child)
  }
  const resident = rows.filter(([each]) => pids.has(each)).reduce((sum, [, , rssKiB]) => sum + rssKiB, 0)
  return { residentMiB: resident / 1024, processes: pids.size }
}
