import type { ComponentChildren, RefObject } from 'preact'
import { Icon, type IconName } from './icons.tsx'

interface SearchFieldProps {
  readonly icon: IconName
  readonly label: string
  readonly placeholder: string
  readonly value: string
  readonly onType: (text: string) => void
  readonly class?: string
  readonly autocomplete?: 'off'
  readonly spellcheck?: boolean
  readonly field?: RefObject<HTMLInputElement | null>
  /** What stands behind the field. */
  readonly children?: ComponentChildren
}

/** A search field with an icon before it. */
export function SearchField({ icon, label, onType, field, children, ...attributes }: SearchFieldProps) {
  return (
    <div class="search">
      <Icon name={icon} />
      <input
        {...attributes}
        ref={field}
        type="search"
        aria-label={label}
        onInput={({ currentTarget }) => onType(currentTarget.value)}
      />
      {children}
    </div>
  )
}
