import { Button } from './controls.tsx'

/** Choices of several among a few, or among many. */

interface ChoicesProps {
  readonly label: string
  /** Titles by value. */
  readonly options: readonly (readonly [value: string, title: string])[]
  readonly chosen: readonly string[]
  readonly onChange: (chosen: readonly string[]) => void
}

/** A box to check for each option. */
export function CheckList({ label, options, chosen, onChange }: ChoicesProps) {
  const toggle = (value: string) =>
    onChange(chosen.includes(value) ? chosen.filter((each) => each !== value) : [...chosen, value])
  return (
    <fieldset class="choices">
      <legend class="field-label">{label}</legend>
      {options.map(([value, title]) => (
        <label key={value} class="check">
          <input type="checkbox" checked={chosen.includes(value)} onChange={() => toggle(value)} />
          <span>{title}</span>
        </label>
      ))}
    </fieldset>
  )
}

interface ChipListProps extends ChoicesProps {
  /** The first entry of the list, such as "Any agent". */
  readonly none: string
  /** The same when something is chosen, such as "Add an agent". */
  readonly more: string
}

/** A list to choose from, and what is chosen behind it. */
export function ChipList({ label, options, chosen, none, more, onChange }: ChipListProps) {
  const titles = new Map(options)
  const others = options.filter(([value]) => !chosen.includes(value))
  return (
    <fieldset class="choices">
      <legend class="field-label">{label}</legend>
      <select
        aria-label={label}
        value=""
        onChange={({ currentTarget }) => {
          const { value } = currentTarget
          currentTarget.value = ''
          if (value !== '') onChange([...chosen, value])
        }}
      >
        <option value="">{chosen.length === 0 ? none : `${more}…`}</option>
        {others.map(([value, title]) => (
          <option key={value} value={value}>
            {title}
          </option>
        ))}
      </select>
      {chosen.map((value) => (
        <span key={value} class="chip">
          {titles.get(value) ?? value}
          <Button
            icon="close"
            label={`Remove ${titles.get(value) ?? value}`}
            onClick={() => onChange(chosen.filter((each) => each !== value))}
          />
        </span>
      ))}
    </fieldset>
  )
}
