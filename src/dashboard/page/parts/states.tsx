import type { ComponentChildren } from 'preact'
import type { ApiFailure } from '../data/api.ts'
import { Icon, type IconName } from './icons.tsx'

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
      {retry && (
        <button type="button" class="quiet" onClick={retry}>
          Try again
        </button>
      )}
    </div>
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

function sentence(message: string): string {
  const capital = message.charAt(0).toUpperCase() + message.slice(1)
  return /[.!?…]$/.test(capital) ? capital : `${capital}.`
}
