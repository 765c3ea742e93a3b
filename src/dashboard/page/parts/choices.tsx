import type { ComponentChildren } from 'preact'
import { Button } from './controls.tsx'
import { type Bound, type Options, toOption, useProblem } from './fields.tsx'

/** Choices of several among a few, or among many. */

interface ChoicesProps extends Bound<readonly string[]> {
  readonly label: string
  readonly options: Options
}

type ControlState = ReturnType<typeof useProblem>['state']

interface GroupProps extends Pick<ChoicesProps, 'label' | 'problem'> {
  readonly children: (state: ControlState) => ComponentChildren
}

function Group({ label, problem, children }: GroupProps) {
  const { state, said } = useProblem(problem)
  return (
    <fieldset class="choices">
      <legend class="field-label">{label}</legend>
      {children(state)}
      {said}
    </fieldset>
  )
}

/** A box to check for each option. */
export function CheckList({ options, value: chosen, set, name, ...group }: ChoicesProps) {
  const toggle = (value: string) =>
    set(chosen.includes(value) ? chosen.filter((each) => each !== value) : [...chosen, value])
  return (
    <Group {...group}>
      {(state) =>
        options.map(([value, title]) => (
          <label key={value} class="check">
            <input
              {...state}
              type="checkbox"
              name={name}
              checked={chosen.includes(value)}
              onChange={() => toggle(value)}
            />
            <span>{title}</span>
          </label>
        ))
      }
    </Group>
  )
}

interface ChipListProps extends ChoicesProps {
  /** The first entry of the list, such as "Any agent". */
  readonly none: string
  /** The same when something is chosen, such as "Add an agent". */
  readonly more: string
}

/** A list to choose from, and what is chosen behind it. */
export function ChipList({ options, value: chosen, set, name, none, more, ...group }: ChipListProps) {
  const titles = new Map(options)
  const add = (event: { readonly currentTarget: HTMLSelectElement }) => {
    const { value } = event.currentTarget
    event.currentTarget.value = ''
    if (value !== '') set([...chosen, value])
  }
  return (
    <Group {...group}>
      {(state) => (
        <>
          <select {...state} aria-label={group.label} name={name} value="" onChange={add}>
            <option value="">{chosen.length === 0 ? none : `${more}…`}</option>
            {options.filter(([value]) => !chosen.includes(value)).map(toOption)}
          </select>
          {chosen.map((value) => (
            <span key={value} class="chip">
              {titles.get(value) ?? value}
              <Button
                icon="close"
                label={`Remove ${titles.get(value) ?? value}`}
                onClick={() => set(chosen.filter((each) => each !== value))}
              />
            </span>
          ))}
        </>
      )}
    </Group>
  )
}
