import type { ComponentChildren } from 'preact'
import { words } from '../../../base/format.ts'
import { lookup } from '../../../base/lookup.ts'
import type { ApiFailure } from '../data/api.ts'
import type { Loading } from '../data/loading.ts'
import { Button, Icon, type IconName } from './controls.tsx'

/** What a view shows when it has nothing to show. */
export function Empty({
  title,
  icon,
  children,
}: {
  readonly title: string
  readonly icon?: IconName
  readonly children?: ComponentChildren
}) {
  return (
    <div class="empty">
      {icon && <Icon name={icon} />}
      <p class="empty-title">{title}</p>
      {children}
    </div>
  )
}

/** A failure of the service, in its own words, and a way to try again. */
export function Problem({ problem, retry }: { readonly problem: ApiFailure; readonly retry?: () => void }) {
  return (
    <div class="problem" role="alert">
      <Icon name="warning" />
      <p>
        {sentence(problem.message)}
        {problem.isTransient && ' Trying again…'}
      </p>
      {retry && <Button class="quiet" onClick={retry} text="Try again" />}
    </div>
  )
}

/** Why what a button or a form has asked for was refused; empty: it was not. */
export function ProblemText({ text }: { readonly text: string }) {
  if (text === '') return null
  return (
    <p class="problem" role="alert">
      {text}
    </p>
  )
}

/** Grey lines in the place of data that is being read. */
export function Skeleton({ lines = 3 }: { readonly lines?: number }) {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  )
}

type Many = readonly unknown[] | { readonly items: readonly unknown[] }

interface LoadedProps<T> {
  readonly read: Pick<Loading<T>, 'data' | 'problem'> & Partial<Pick<Loading<T>, 'reload'>>
  /** Of the grey ones. */
  readonly lines?: number
  /** In place of a list without items. */
  readonly empty?: T extends Many ? ComponentChildren : never
  /** In place of everything if the service has no such thing. */
  readonly missing?: ComponentChildren
  readonly children: (data: T) => ComponentChildren
}

/** What was read from the service, below why the last attempt failed, if it did; grey lines until there is either. */
export function Loaded<T>({ read: { data, problem, reload }, empty, missing, children, ...grey }: LoadedProps<T>) {
  if (missing !== undefined && problem?.code === 'NOT_FOUND') return <>{missing}</>
  const isEmpty = empty !== undefined && data !== undefined && itemsOf(data as Many).length === 0
  return (
    <>
      {problem !== null && <Problem problem={problem} {...(reload && { retry: reload })} />}
      {data === undefined ? problem === null && <Skeleton {...grey} /> : isEmpty ? empty : children(data)}
    </>
  )
}

function itemsOf(data: Many): readonly unknown[] {
  return 'items' in data ? data.items : data
}

function sentence(message: string): string {
  const capital = message.charAt(0).toUpperCase() + message.slice(1)
  return /[.!?…]$/.test(capital) ? capital : `${capital}.`
}

const TONES = lookup<string>({
  completed: 'good',
  active: 'good',
  approved: 'good',
  answered: 'good',
  finished: 'good',
  succeeded: 'good',
  ok: 'good',
  running: 'busy',
  queued: 'idle',
  pending: 'idle',
  started: 'busy',
  failed: 'bad',
  firing: 'bad',
  timed_out: 'bad',
  revoked: 'bad',
  expired: 'idle',
  cancelled: 'idle',
  skipped: 'idle',
  rejected: 'idle',
  awaiting_approval: 'wait',
  awaiting_input: 'wait',
  paused: 'wait',
  behind: 'wait',
  recovering: 'wait',
  no_data: 'wait',
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

interface FactsProps {
  /** A fact without a value is left out. */
  readonly facts: readonly (readonly [name: string, value: ComponentChildren])[]
}

/** A row of names, each above its value. */
export function Facts({ facts }: FactsProps) {
  return (
    <dl class="facts">
      {facts.map(
        ([name, value]) =>
          value && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  )
}
