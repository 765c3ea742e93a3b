import { useId } from 'preact/hooks'
import type { Comparison } from '../data/alerts.ts'
import type { ApiFailure } from '../data/api.ts'
import { problemAt } from '../data/problems.ts'
import { Field } from '../parts/fields.tsx'
import { type AlertDraft, hasRecovery } from './alert-draft.ts'

export interface FieldsProps {
  readonly draft: AlertDraft
  readonly set: (changes: Partial<AlertDraft>) => void
  readonly problem: ApiFailure | null
  /** The columns of the query's result, to choose from; empty until it has run. */
  readonly columns: readonly string[]
}

type Name = {
  [Member in keyof AlertDraft]: AlertDraft[Member] extends string ? Member : never
}[keyof AlertDraft]

type Options = readonly (readonly [value: string, title: string])[]

const OPERATORS: readonly Comparison['op'][] = ['>', '>=', '<', '<=', '=', '!=']
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

interface ChoiceProps extends Pick<FieldsProps, 'draft' | 'set' | 'problem'> {
  readonly name: Name
  /** The member of the API, if it has another name. */
  readonly member?: string
  readonly label: string
  readonly options: Options
}

/** A choice among a few values; another one that was set through the API is added to them. */
function Choice({ draft, set, problem, name, member = name, label, options }: ChoiceProps) {
  const value = draft[name]
  const all = options.some(([each]) => each === value) ? options : [...options, [value, value] as const]
  return (
    <Field label={label} problem={problemAt(problem, member)}>
      <select
        name={name}
        value={value}
        onChange={({ currentTarget }) => set({ [name]: currentTarget.value } as Partial<AlertDraft>)}
      >
        {all.map(([each, title]) => (
          <option key={each} value={each}>
            {title}
          </option>
        ))}
      </select>
    </Field>
  )
}

/** When a series fires. */
export function ConditionFields({ draft, set, problem, columns }: FieldsProps) {
  const list = useId()
  const refused = problemAt(problem, 'condition')
  const number = (name: 'value' | 'recover', isRequired: boolean) => ({
    type: 'number' as const,
    step: 'any',
    required: isRequired,
    name,
    value: draft[name],
    onInput: ({ currentTarget }: { currentTarget: HTMLInputElement }) =>
      set({ [name]: currentTarget.value } as Partial<AlertDraft>),
  })
  return (
    <>
      <div class="field-grid condition-fields">
        <Field label="Fires when" problem={refused}>
          <select
            name="condition"
            value={draft.isAnyRow ? 'any_row' : 'compare'}
            onChange={({ currentTarget }) => set({ isAnyRow: currentTarget.value === 'any_row' })}
          >
            <option value="compare">a column is</option>
            <option value="any_row">there is a row</option>
          </select>
        </Field>
        {!draft.isAnyRow && (
          <>
            <Field label="Column">
              <input
                class="mono"
                name="column"
                required
                list={list}
                autocomplete="off"
                spellcheck={false}
                value={draft.column}
                onInput={({ currentTarget }) => set({ column: currentTarget.value })}
              />
            </Field>
            <Field label="Comparison">
              <select
                name="op"
                value={draft.op}
                onChange={({ currentTarget }) => set({ op: currentTarget.value as Comparison['op'] })}
              >
                {OPERATORS.map((each) => (
                  <option key={each}>{each}</option>
                ))}
              </select>
            </Field>
            <Field label="Value">
              <input {...number('value', true)} />
            </Field>
            {hasRecovery(draft) && (
              <Field label="Recovers at" hint="Empty: at the same value.">
                <input {...number('recover', false)} />
              </Field>
            )}
          </>
        )}
      </div>
      <Field
        label="Separate state for each"
        hint="Columns of the result, separated by commas, such as agent_name. Empty: one state for all."
        problem={problemAt(problem, 'by')}
      >
        <input
          class="mono"
          name="by"
          list={list}
          autocomplete="off"
          spellcheck={false}
          value={draft.by}
          onInput={({ currentTarget }) => set({ by: currentTarget.value })}
        />
      </Field>
      <datalist id={list}>
        {columns.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </>
  )
}

/** How often the query runs, over which window, and how long the condition must hold. */
export function TimingFields(props: Omit<FieldsProps, 'columns'>) {
  return (
    <div class="field-grid timing-fields">
      <Choice {...props} name="every" label="Evaluated every" options={TIMES} />
      <Choice {...props} name="window" label="Over the last" options={[['', 'no window'], ...LONG_TIMES]} />
      <Choice {...props} name="for" label="Must hold for" options={[['', 'one evaluation'], ...TIMES]} />
      <Choice
        {...props}
        name="keep"
        member="keep_firing_for"
        label="Keeps firing for"
        options={[['', 'only while it holds'], ...TIMES]}
      />
      <Choice {...props} name="renotify" label="Notifies again after" options={[['', 'never'], ...LONG_TIMES]} />
      {!props.draft.isAnyRow && (
        <Choice {...props} name="noData" member="no_data" label="A series without a row" options={NO_DATA} />
      )}
      <Choice {...props} name="onError" member="on_error" label="If the query fails" options={ON_ERROR} />
    </div>
  )
}
