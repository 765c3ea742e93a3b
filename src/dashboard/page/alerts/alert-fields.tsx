import { useId } from 'preact/hooks'
import { type Bound, SelectField, TextField } from '../parts/fields.tsx'
import type { FormState } from '../parts/form.tsx'
import { type AlertDraft, hasRecovery } from './alert-draft.ts'

interface FieldsProps {
  readonly form: FormState<AlertDraft>
}

type Name = {
  [Member in keyof AlertDraft]: AlertDraft[Member] extends string ? Member : never
}[keyof AlertDraft]

type Options = readonly (readonly [value: string, title: string])[]

const CONDITIONS = [
  ['compare', 'a column is'],
  ['any_row', 'there is a row'],
] as const
const OPERATORS = (['>', '>=', '<', '<=', '=', '!='] as const).map((op) => [op, op] as const)
const TIMES: Options = [
  ['1m', '1 minute'],
  ['2m', '2 minutes'],
  ['5m', '5 minutes'],
  ['10m', '10 minutes'],
  ['15m', '15 minutes'],
  ['30m', '30 minutes'],
  ['1h', '1 hour'],
  ['6h', '6 hours'],
  ['12h', '12 hours'],
  ['1d', '1 day'],
]
const LONG_TIMES: Options = [...TIMES, ['7d', '7 days']]
const NO_DATA: Options = [
  ['ok', 'Counts as ok'],
  ['last', 'Keeps its state'],
  ['alert', 'Alerts'],
  ['zero', 'Has the value 0'],
]
const ON_ERROR: Options = [
  ['last', 'States stay as they are'],
  ['alert', 'Alert'],
]

interface ChoiceProps extends FieldsProps {
  readonly name: Name
  /** The member of the API, if it has another name. */
  readonly member?: string
  readonly label: string
  readonly options: Options
}

/** A choice among a few values; another one that was set through the API is added to them. */
function Choice({ form, name, member, label, options }: ChoiceProps) {
  const field: Bound<string> = form.field(name, member)
  const isKnown = options.some(([each]) => each === field.value)
  return <SelectField {...field} label={label} options={isKnown ? options : [...options, [field.value, field.value]]} />
}

interface ConditionProps extends FieldsProps {
  /** The columns of the query's result, to choose from; empty until it has run. */
  readonly columns: readonly string[]
}

/** When a series fires. */
export function ConditionFields({ form, columns }: ConditionProps) {
  const list = useId()
  const { isAnyRow } = form.draft
  const refused = form.refusedAt('condition')
  // A member of the condition says itself what was refused of it, and gets the focus.
  const members = ['column', 'op', 'value', ...(hasRecovery(form.draft) ? ['recover_value'] : [])]
  const isOfMember = !isAnyRow && members.some((name) => form.refusedAt(`condition.${name}`) !== '')
  return (
    <>
      <div class="field-grid condition-fields">
        <SelectField
          label="Fires when"
          problem={isOfMember ? '' : refused}
          name="condition"
          value={isAnyRow ? 'any_row' : 'compare'}
          set={(chosen) => form.set({ isAnyRow: chosen === 'any_row' })}
          options={CONDITIONS}
        />
        {!isAnyRow && (
          <>
            <TextField {...form.field('column', 'condition.column')} label="Column" isCode required list={list} />
            <SelectField {...form.field('op', 'condition.op')} label="Comparison" options={OPERATORS} />
            <TextField {...form.field('value', 'condition.value')} label="Value" type="number" step="any" required />
            {hasRecovery(form.draft) && (
              <TextField
                {...form.field('recover', 'condition.recover_value')}
                label="Recovers at"
                hint="Empty: at the same value."
                type="number"
                step="any"
              />
            )}
          </>
        )}
      </div>
      <TextField
        {...form.field('by')}
        label="Separate state for each"
        hint="Columns of the result, separated by commas, such as agent_name. Empty: one state for all."
        isCode
        list={list}
      />
      <datalist id={list}>
        {columns.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  )
}

/** How often the query runs, over which window, and how long the condition must hold. */
export function TimingFields({ form }: FieldsProps) {
  return (
    <div class="field-grid">
      <Choice form={form} name="every" label="Evaluated every" options={TIMES} />
      <Choice form={form} name="window" label="Over the last" options={[['', 'no window'], ...LONG_TIMES]} />
      <Choice form={form} name="for" label="Must hold for" options={[['', 'one evaluation'], ...TIMES]} />
      <Choice
        form={form}
        name="keep"
        member="keep_firing_for"
        label="Keeps firing for"
        options={[['', 'only while it holds'], ...TIMES]}
      />
      <Choice form={form} name="renotify" label="Notifies again after" options={[['', 'never'], ...LONG_TIMES]} />
      {!form.draft.isAnyRow && (
        <Choice form={form} name="noData" member="no_data" label="A series without a row" options={NO_DATA} />
      )}
      <Choice form={form} name="onError" member="on_error" label="If the query fails" options={ON_ERROR} />
    </div>
  )
}
