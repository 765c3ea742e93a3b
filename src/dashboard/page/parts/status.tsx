import { words } from '../../../base/format.ts'
import { lookup } from '../../../base/lookup.ts'

const TONES = lookup<string>({
  completed: 'good',
  active: 'good',
  approved: 'good',
  answered: 'good',
  finished: 'good',
  running: 'busy',
  queued: 'idle',
  pending: 'idle',
  started: 'busy',
  failed: 'bad',
  timed_out: 'bad',
  rejected: 'bad',
  revoked: 'bad',
  expired: 'idle',
  cancelled: 'idle',
  skipped: 'idle',
  awaiting_approval: 'wait',
  awaiting_input: 'wait',
  paused: 'wait',
  debug: 'idle',
  info: 'busy',
  warn: 'wait',
  error: 'bad',
})

/** The class that colours a status or a level. */
export function toneOf(name: string): string {
  return TONES.get(name) ?? 'idle'
}

/** A status of a run, task, agent, key or decision: a dot and a word, so that colour is never the only sign. */
export function Status({ name, text }: { readonly name: string; readonly text?: string }) {
  return (
    <span class={`status ${toneOf(name)}`} data-status={name}>
      {text ?? words(name)}
    </span>
  )
}

/** The level of an event. */
export function Level({ name }: { readonly name: string }) {
  return <span class={`level ${toneOf(name)}`}>{name}</span>
}
