/** Resident memory of a process and all that descend from it. Pages that they share are counted in each of them. */
export async function memoryOf(pid: number): Promise<{ residentMiB: number; processes: number }> {
  const listing = await Bun.$`ps -A -o pid=,ppid=,rss=`.text()
  const rows = listing
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number) as [pid: number, parent: number, rssKiB: number])
  const family = new Set([pid])
  // A parent may be listed after its child, hence until nothing is added.
  for (let size = 0; size < family.size; ) {
    size = family.size
    for (const [child, parent] of rows) if (family.has(parent)) family.add(child)
  }
  const resident = rows.filter(([each]) => family.has(each)).reduce((sum, [, , rssKiB]) => sum + rssKiB, 0)
  return { residentMiB: resident / 1024, processes: family.size }
}
