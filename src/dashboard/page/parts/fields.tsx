import { type ComponentChildren, cloneElement, type RefObject, type TextareaHTMLAttributes, type VNode } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { Icon, type IconName } from './controls.tsx'

interface FieldProps {
  readonly label: string
  readonly hint?: ComponentChildren
  readonly problem?: string | undefined
  /** The label is for screen readers; others read the placeholder. */
  readonly isBare?: boolean | undefined
  /** The control. */
  readonly children: VNode
}

/** A control below its label, with a hint, and what is wrong with its value; the control is described by both. */
export function Field({ label, hint, problem, isBare = false, children }: FieldProps) {
  const { state, said, hintId } = useProblem(problem, Boolean(hint))
  return (
    <div class="field">
      {/* biome-ignore lint/a11y/noLabelWithoutControl: the control is among the children. */}
      <label>
        <span class={isBare ? 'unseen' : 'field-label'}>{label}</span>
        {cloneElement(children, state)}
      </label>
      {hint && (
        <p class="hint" id={hintId}>
          {hint}
        </p>
      )}
      {said}
    </div>
  )
}

/** What is wrong with a value: `said` shows it, and `state` has the attributes that mark its control and point to that. */
export function useProblem(problem = '', hasHint = false) {
  const id = useId()
  const hintId = `${id}-hint`
  const described = [hasHint && hintId, problem !== '' && id].filter(Boolean).join(' ')
  const state = { 'aria-invalid': problem !== '', ...(described !== '' && { 'aria-describedby': described }) }
  const said = problem !== '' && (
    <p class="field-problem" id={id} role="alert">
      {problem}
    </p>
  )
  return { state, said, hintId }
}

/** A value, and how a field changes it. */
export interface Bound<Value> {
  readonly name?: string
  readonly value: Value
  readonly set: (value: Value) => void
  readonly problem?: string | undefined
}

type Labels = Pick<FieldProps, 'label' | 'hint' | 'isBare'>

type Attributes = Pick<
  TextareaHTMLAttributes,
  'required' | 'readOnly' | 'placeholder' | 'maxLength' | 'class' | 'autocomplete' | 'spellcheck' | 'onKeyDown'
>

interface TextFieldProps extends Bound<string>, Labels, Attributes {
  readonly type?: 'url' | 'number' | 'password' | 'datetime-local'
  readonly step?: 'any'
  readonly list?: string
  /** JSON, names, or anything else that is not prose. */
  readonly isCode?: boolean | undefined
  /** Lines of a longer text. */
  readonly rows?: number | undefined
  /** It grows with its text, up to so many lines. */
  readonly rowsMax?: number | undefined
  readonly field?: RefObject<HTMLTextAreaElement | null>
  readonly 'data-action'?: string
}

/** A field for a text, of one line unless it has `rows` or `rowsMax`. */
export function TextField({ value, set, isCode = false, ...props }: TextFieldProps) {
  const { label, hint, problem, isBare, rows, rowsMax, field, ...attributes } = props
  const lines = rowsMax === undefined ? rows : Math.min(rowsMax, value.split('\n').length + 1)
  // For its type; attributes of the other one are not given.
  const Control = (lines === undefined ? 'input' : 'textarea') as 'textarea'
  return (
    <Field label={label} hint={hint} problem={problem} isBare={isBare}>
      <Control
        autocomplete="off"
        {...(isCode && { class: 'mono', spellcheck: false })}
        {...attributes}
        {...(lines !== undefined && { rows: lines })}
        {...(field && { ref: field })}
        value={value}
        onInput={({ currentTarget }) => set(currentTarget.value)}
      />
    </Field>
  )
}

/** Titles by value. */
export type Options<Value extends string = string> = readonly (readonly [value: Value, title: string])[]

interface SelectFieldProps<Value extends string> extends Bound<Value>, Labels {
  readonly options: Options<NoInfer<Value>>
  readonly disabled?: boolean
}

/** A field to choose one of a few values. */
export function SelectField<Value extends string>({
  label,
  hint,
  problem,
  set,
  options,
  ...attributes
}: SelectFieldProps<Value>) {
  return (
    <Field label={label} hint={hint} problem={problem}>
      <select {...attributes} onChange={({ currentTarget }) => set(currentTarget.value as Value)}>
        {options.map(toOption)}
      </select>
    </Field>
  )
}

export function toOption([value, title]: Options[number]) {
  return (
    <option key={value} value={value}>
      {title}
    </option>
  )
}

/** A box to check, before what it means. */
export function CheckField({ name, value, set, problem, children }: Bound<boolean> & { children: ComponentChildren }) {
  const { state, said } = useProblem(problem)
  return (
    <>
      <label class="check">
        <input
          {...state}
          type="checkbox"
          name={name}
          checked={value}
          onChange={({ currentTarget }) => set(currentTarget.checked)}
        />
        {children}
      </label>
      {said}
    </>
  )
}

interface SelectProps<Value extends string> extends Bound<Value> {
  readonly label: string
  readonly options: Options<NoInfer<Value>>
}

/** A choice in a row of filters; its label is its first option. */
export function Select<Value extends string>({ label, name, value, options, set, problem }: SelectProps<Value>) {
  const { state, said } = useProblem(problem)
  return (
    <>
      <select
        {...state}
        aria-label={label}
        name={name}
        class={value === options[0]?.[0] ? '' : 'is-set'}
        value={value}
        onChange={({ currentTarget }) => set(currentTarget.value as Value)}
      >
        {options.map(toOption)}
      </select>
      {said}
    </>
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
  readonly set: (text: string) => void
}

/** A search field that filters while the user types. Its text follows `value` when something else changes that. */
export function FilterField({ value, set, ...field }: FilterFieldProps) {
  const [text, setText] = useDebounced(value, set)
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
