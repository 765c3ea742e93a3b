import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ApiFailure } from '../data/api.ts'
import { failureOf } from '../data/loading.ts'
import { problemAt, problemBeside } from '../data/problems.ts'
import type { Role } from '../data/records.ts'
import { Button, type IconName } from './controls.tsx'
import type { Bound } from './fields.tsx'
import { ProblemText } from './states.tsx'

export type FormState<Draft extends object> = ReturnType<typeof useForm<Draft>>

/** What a form edits, and what the service refused of it, for {@link Form} and the fields in it. */
export function useForm<Draft extends object>(initial: Draft | (() => Draft)) {
  const [draft, setDraft] = useState<Draft>(initial)
  const [failure, setFailure] = useState<ApiFailure | null>(null)
  const [note, say] = useState('')
  const [isBusy, setBusy] = useState(false)
  const element = useRef<HTMLFormElement>(null)
  /** The fields that are shown: what the service says of anything else is shown above the button. */
  const places = new Set<string>()
  useEffect(() => {
    // Moves the focus to the first field that was refused.
    if (failure !== null) element.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus()
  }, [failure])
  const set = (changes: Partial<Draft>) => setDraft((before) => ({ ...before, ...changes }))
  /** What was refused at a place of the request's body, for a control that shows it. */
  const refusedAt = (place: string) => {
    places.add(place)
    return problemAt(failure, place)
  }
  /** A member of the draft, for a field. @param place in the request's body, where that has another name */
  const field = <Name extends keyof Draft & string>(name: Name, place: string = name): Bound<Draft[Name]> => ({
    name,
    value: draft[name],
    set: (value) => set({ [name]: value } as unknown as Partial<Draft>),
    problem: refusedAt(place),
  })
  /** Does something with the draft; if that is refused, the field that is wrong is marked. */
  const attempt = async <T,>(work: () => Promise<T>): Promise<T> => {
    say('')
    setFailure(null)
    setBusy(true)
    try {
      return await work()
    } catch (error) {
      setFailure(failureOf(error))
      throw error
    } finally {
      setBusy(false)
    }
  }
  return { draft, set, field, refusedAt, attempt, say, note, isBusy, failure, places, element }
}

/**
 * The version that an edit names, so that it overwrites nothing unseen: the one that the form began with, or a later one
 * that differs from it in nothing that the form edits.
 * @param edited what the form edits of it
 */
export function useVersion<T extends { readonly version: number }>(current: T | null, edited: (one: T) => unknown) {
  const [begun, began] = useState(current)
  const same = current !== null && begun !== null && JSON.stringify(edited(current)) === JSON.stringify(edited(begun))
  return { version: (same ? current : begun)?.version, began }
}

interface FormProps<Draft extends object> {
  readonly form: FormState<Draft>
  readonly class?: string
  readonly submit: () => Promise<unknown>
  /** The text of the button. */
  readonly action: string
  readonly kind?: 'primary' | 'primary small' | 'danger' | ''
  readonly icon?: IconName
  readonly needs?: Role
  readonly disabled?: boolean
  /** What stands behind the button. */
  readonly foot?: ComponentChildren
  readonly children?: ComponentChildren
}

/** Fields, why they were refused if that belongs to none of them, and the button that submits them. */
export function Form<Draft extends object>({ form, submit, children, foot, ...props }: FormProps<Draft>) {
  const { class: name, action, kind = 'primary', disabled = false, ...button } = props
  const send = (event: Event) => {
    event.preventDefault()
    // A failure is shown.
    if (!form.isBusy && !disabled) void form.attempt(submit).catch(() => {})
  }
  return (
    <form ref={form.element} class={name} onSubmit={send}>
      {children}
      <ProblemElsewhere form={form} />
      <div class="actions">
        <Button {...button} type="submit" class={kind} text={action} disabled={form.isBusy || disabled} />
        {foot}
        <span class="hint" role="status">
          {form.note}
        </span>
      </div>
    </form>
  )
}

/** Rendered after the fields, which say what they show. */
function ProblemElsewhere({
  form: { failure, places },
}: {
  readonly form: Pick<FormState<object>, 'failure' | 'places'>
}) {
  return <ProblemText text={problemBeside(failure, places)} />
}
