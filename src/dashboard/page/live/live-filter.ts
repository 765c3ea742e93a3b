/** The filter of the live view, as the address has it. */
interface LiveFilter {
  readonly level: string
  readonly agent: string
  readonly kind: string
  readonly type: string
}

export const LIVE_CHOICES: readonly (readonly [value: string, title: string])[] = [
  ['', 'Everything'],
  ['event', 'Events'],
  ['task', 'Tasks'],
  ['run', 'Runs'],
  ['failed', 'Failed runs'],
]

export function liveFilterOf(query: Readonly<Record<string, string>>): LiveFilter {
  return { level: query.level ?? '', agent: query.agent ?? '', kind: query.kind ?? '', type: (query.type ?? '').trim() }
}

/** The same as a filter of the feed. A type without `*` is the start of one, so that it works while it is typed. */
export function feedFilterOf({ level, agent, kind, type }: LiveFilter): object {
  const types = type.split(/[\s,]+/).filter((each) => each !== '')
  return {
    ...(agent !== '' && { agent_id: agent }),
    ...(kind === 'failed' ? { kind: 'run', status: ['failed', 'timed_out'] } : kind !== '' && { kind }),
    ...(level !== '' && { level }),
    ...(types.length > 0 && { type: types.map((each) => (each.endsWith('*') ? each : `${each}*`)) }),
  }
}
