import type { Result } from '../data/api.ts'
import { Button, Menu } from '../parts/controls.tsx'
import { Select, SelectField } from '../parts/fields.tsx'
import { type ChartChoice, type ChartPlan, KINDS, planOf, UNITS, type Unit } from './chart-plan.ts'
import { isNumeric } from './columns.ts'

/** A change of the choice; undefined makes the page choose that member again. */
type Change = { readonly [Name in keyof ChartChoice]?: ChartChoice[Name] | undefined }

interface ChartControlsProps {
  readonly result: Result
  readonly choice: ChartChoice
  readonly onChange: (change: Change) => void
}

type Side = 'left' | 'right' | 'hidden'

/** What is drawn and how. The first option of each control leaves the choice to the page. */
export function ChartControls({ result, choice, onChange }: ChartControlsProps) {
  const plan = planOf(result, choice)
  if (plan === null) return null
  const { kind } = plan
  const titles = new Map(KINDS)
  const names = result.columns.map(({ name }) => name)
  const options = (automatic: string, of: readonly string[]) => [
    ['', automatic] as const,
    ...of.map((name) => [name, name] as const),
  ]
  return (
    <fieldset class="filters chart-controls" aria-label="Chart">
      <Select
        label="Kind of chart"
        value={choice.kind ?? ''}
        options={[
          ['', `Automatic: ${titles.get(choice.kind === undefined ? kind : automaticKind(result, choice))}`],
          ...KINDS,
        ]}
        set={(to) => onChange({ kind: to || undefined })}
      />
      {kind !== 'number' && (
        <>
          <Select
            label="Horizontal axis"
            value={choice.x ?? ''}
            options={options(choice.x === undefined ? `Across: ${plan.x.name}` : 'Across: automatic', names)}
            set={(to) => onChange({ x: to || undefined })}
          />
          <Select
            label="Series"
            value={choice.series ?? ''}
            options={options(
              choice.series === undefined && plan.by !== null ? `Series by ${plan.by}` : 'Series: one for each column',
              names.filter((name) => name !== plan.x.name && !plan.left.includes(name)),
            )}
            set={(to) => onChange({ series: to || undefined })}
          />
        </>
      )}
      <Menu label="Values and units" icon="columns" title="Values">
        <ValueFields result={result} plan={plan} onChange={onChange} />
        <UnitField
          label={plan.right.length > 0 ? 'Unit, left axis' : 'Unit'}
          chosen={choice.unit}
          shown={plan.unit}
          onChange={(unit) => onChange({ unit })}
        />
        {plan.right.length > 0 && (
          <UnitField
            label="Unit, right axis"
            chosen={choice.right_unit}
            shown={plan.rightUnit}
            onChange={(right_unit) => onChange({ right_unit })}
          />
        )}
      </Menu>
      {Object.keys(choice).length > 0 && (
        <Button class="small quiet" text="Reset" onClick={() => onChange(NOTHING_CHOSEN)} />
      )}
    </fieldset>
  )
}

const NOTHING_CHOSEN: Change = {
  kind: undefined,
  x: undefined,
  y: undefined,
  right: undefined,
  series: undefined,
  unit: undefined,
  right_unit: undefined,
}

function automaticKind(result: Result, { kind: _chosen, ...rest }: ChartChoice) {
  return planOf(result, rest)?.kind ?? 'bar'
}

/** Which axis each column of numbers is on. A chart with a series for each value of a column has one. */
function ValueFields({ result, plan, onChange }: Omit<ChartControlsProps, 'choice'> & { readonly plan: ChartPlan }) {
  const numbers = result.columns.filter((column) => isNumeric(column) && column !== plan.x).map(({ name }) => name)
  const sides: readonly (readonly [Side, string])[] = [
    ['left', plan.kind === 'number' ? 'Shown' : 'Left axis'],
    ...(plan.kind === 'line' || plan.kind === 'bar' ? ([['right', 'Right axis']] as const) : []),
    ['hidden', 'Hidden'],
  ]
  if (plan.by !== null) {
    return (
      <SelectField
        label="Value of the series"
        value={plan.left[0] ?? ''}
        set={(name) => onChange({ y: [name] })}
        options={numbers.map((name) => [name, name])}
      />
    )
  }
  const move = (name: string, side: Side) => {
    const without = (of: readonly string[]) => of.filter((each) => each !== name)
    const y = [...without(plan.left), ...(side === 'left' ? [name] : [])]
    const right = [...without(plan.right), ...(side === 'right' ? [name] : [])]
    const inOrder = (of: readonly string[]) => numbers.filter((each) => of.includes(each))
    onChange({ y: inOrder(y), right: inOrder(right) })
  }
  return numbers.map((name) => (
    <SelectField
      key={name}
      label={name}
      value={plan.left.includes(name) ? 'left' : plan.right.includes(name) ? 'right' : 'hidden'}
      set={(side) => move(name, side)}
      options={sides}
    />
  ))
}

interface UnitFieldProps {
  readonly label: string
  readonly chosen: Unit | undefined
  /** The one in use. */
  readonly shown: Unit
  readonly onChange: (unit: Unit | undefined) => void
}

function UnitField({ label, chosen, shown, onChange }: UnitFieldProps) {
  const title = new Map(UNITS).get(shown)
  return (
    <SelectField
      label={label}
      value={chosen ?? ''}
      set={(to) => onChange(to || undefined)}
      options={[['', chosen === undefined ? `Automatic: ${title?.toLowerCase()}` : 'Automatic'], ...UNITS]}
    />
  )
}
