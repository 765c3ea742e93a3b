import type { ActivityItem } from '../../live/messages.ts'

/** An activity with its original text. */
export interface Received {
  readonly activity: ActivityItem
  readonly json: string
}

/** The subscription of a tail. */
export interface Subscribe {
  readonly filter: Readonly<Record<string, readonly string[]>>
  readonly max_per_second: number | undefined
  readonly after: string | undefined
}
