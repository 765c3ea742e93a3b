import type { ComponentChildren } from 'preact'

interface FieldProps {
  readonly label: string
  readonly hint?: ComponentChildren
  readonly problem?: string
  readonly children: ComponentChildren
}

/** A control below its label, with a hint, and what is wrong with its value. */
export function Field({ label, hint, problem, children }: FieldProps) {
  return (
    <div class="field">
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
