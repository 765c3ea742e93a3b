import { spawnSync } from 'node:child_process'

export interface Process {
  readonly pid: number
  readonly command: string
}

/** The direct children of a process. */
export function childrenOf(pid: number): Process[] {
  const { stdout } = spawnSync('ps', ['-eo', 'pid=,ppid=,args='], { encoding: 'utf8' })
  return stdout
    .split('\n')
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line))
    .flatMap((match) =>
      match !== null && Number(match[2]) === pid ? { pid: Number(match[1]), command: match[3] } : [],
    )
}
