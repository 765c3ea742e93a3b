import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
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

const TYPING_PAUSE_MS = 300

interface FilterFieldProps extends Omit<SearchFieldProps, 'onType' | 'autocomplete' | 'spellcheck'> {
  /** Told the text, without spaces around it, once the user pauses. */
  readonly onChange: (text: string) => void
}

/** A search field that filters while the user types. Its text follows `value` when something else changes that. */
export function FilterField({ value, onChange, ...field }: FilterFieldProps) {
  const [text, setText] = useTyped(value, onChange)
  return <SearchField {...field} value={text} onType={setText} autocomplete="off" spellcheck={false} />
}

/** The text of a field while it is typed; `onChange` is told when the user pauses. */
export function useTyped(value: string, onChange: (text: string) => void): [string, (text: string) => void] {
  const [text, setText] = useState(value)
  // What was told last: its return as `value` must not undo what was typed since.
  const told = useRef(value)
  useEffect(() => {
    if (value === told.current) return
    told.current = value
    setText(value)
  }, [value])
  useEffect(() => {
    const wanted = text.trim()
    if (wanted === told.current) return
    const timer = setTimeout(() => {
      told.current = wanted
      onChange(wanted)
    }, TYPING_PAUSE_MS)
    return () => clearTimeout(timer)
  }, [text])
  return [text, setText]
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
