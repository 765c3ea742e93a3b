import type { Placeholder } from './placeholders.ts'

interface FieldsProps {
  readonly found: readonly Placeholder[]
  /** By name. */
  readonly values: Readonly<Record<string, string>>
  readonly setValues: (values: Readonly<Record<string, string>>) => void
  readonly onEnter: () => void
}

/** A field for each placeholder of a query. */
export function PlaceholderFields({ found, values, setValues, onEnter }: FieldsProps) {
  return (
    <>
      {found.map(({ name, type }) => (
        <label key={name}>
          <span>
            {name} <small>{type}</small>
          </span>
          <input
            class="small mono"
            name={name}
            value={values[name] ?? ''}
            onInput={({ currentTarget }) => setValues({ ...values, [name]: currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key !== 'Enter') return
              // The form around it, if there is one, is not submitted.
              event.preventDefault()
              onEnter()
            }}
            autocomplete="off"
            spellcheck={false}
          />
        </label>
      ))}
    </>
  )
}
