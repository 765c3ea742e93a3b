import type { Report } from '../report.ts'

/** What the user chooses on the command line. */
export interface PeerOptions {
  readonly report: Report
  /** Only these systems; all if undefined. */
  readonly names: readonly string[] | undefined
  readonly tables: readonly TableName[]
  /** Where peers are installed; kept for the next time. */
  readonly directory: string
  /** Measurements of each figure. */
  readonly rounds: number
  /** The duration of one measurement. */
  readonly seconds: number
  /** How many runs are killed, of each system. */
  readonly kills: number
}

export const TABLES = ['append', 'agents', 'kills', 'otlp'] as const
export type TableName = (typeof TABLES)[number]

const REASON_LENGTH_MAX = 300

/** A peer cannot be measured here, with the reason in one line. */
export class Unavailable extends Error {
  constructor(reason: string) {
    // Programs say last what is wrong.
    super(inOneLine(reason.trim().split('\n').slice(-2).join(' ')))
  }
}

/**
 * Runs the systems of a table one after the other. One that cannot be installed or started is skipped with its reason, and
 * one that fails does not end the others.
 */
export async function eachPeer<P extends { readonly name: string }>(
  { report, names }: Pick<PeerOptions, 'report' | 'names'>,
  peers: readonly P[],
  measure: (peer: P) => Promise<void>,
): Promise<void> {
  for (const peer of peers) {
    if (names !== undefined && !names.includes(peer.name)) continue
    try {
      await measure(peer)
    } catch (error) {
      const what = error instanceof Unavailable ? 'skipped' : 'FAILED'
      report.line(`${peer.name} ${what}: ${inOneLine((error as Error).message)}`)
    }
  }
}

function inOneLine(text: string): string {
  return Bun.stripANSI(text).replaceAll(/\s+/g, ' ').slice(0, REASON_LENGTH_MAX)
}

/** A table in Markdown. */
export function markdown(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  return [line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n')
}
