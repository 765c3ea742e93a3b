import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Icon, type IconName } from './controls.tsx'

interface FieldProps {
  readonly label: string
  readonly hint?: ComponentChildren
  readonly problem?: string | undefined
  readonly children: ComponentChildren
}

/** A control below its label, with a hint, and what is wrong with its value. */
export function Field({ label, hint, problem, children }: FieldProps) {
  return (
    <div class="field">
      {/* biome-ignore lint/a11y/noLabelWithoutControl: the control is among the children. */}
      <label>
        <span class="field-label">{label}</span>
        {children}
      </label>
      {hint && <p class="hint">{hint}</p>}
      {problem && (
        <p class="field-problem" role="alert">
          {problem}
        </p>
      )}
    </div>
  )
}

interface SelectProps {
  readonly label: string
  readonly value: string
  /** Titles by value. */
  readonly options: readonly (readonly [value: string, title: string])[]
  readonly onChange: (value: string) => void
}

/** A choice in a row of filters; its label is its first option. */
export function Select({ label, value, options, onChange }: SelectProps) {
  return (
    <select
      aria-label={label}
      class={value === '' ? '' : 'is-set'}
      value={value}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
    >
      {options.map(([each, title]) => (
        <option key={each} value={each}>
          {title}
        </option>
      ))}
    </select>
  )
}

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
  /** Gets the text, without spaces around it, when the typing pauses. */
  readonly onChange: (text: string) => void
}

/** A search field that filters while the user types. Its text follows `value` when something else changes that. */
export function FilterField({ value, onChange, ...field }: FilterFieldProps) {
  const [text, setText] = useDebounced(value, onChange)
  return <SearchField {...field} value={text} onType={setText} autocomplete="off" spellcheck={false} />
}

/** The text of a field while the user types; `onChange` gets it, without spaces around it, when the typing pauses. */
export function useDebounced(value: string, onChange: (text: string) => void): [string, (text: string) => void] {
  const [text, setText] = useState(value)
  // What `onChange` got last: its return as `value` must not undo what was typed since.
  const reported = useRef(value)
  useEffect(() => {
    if (value === reported.current) return
    reported.current = value
    setText(value)
  }, [value])
  useEffect(() => {
    const wanted = text.trim()
    if (wanted === reported.current) return
    const timer = setTimeout(() => {
      reported.current = wanted
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
        ref={field ?? null}
        type="search"
        aria-label={label}
        onInput={({ currentTarget }) => onType(currentTarget.value)}
      />
      {children}
    </div>
  )
}
