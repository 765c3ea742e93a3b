import type { ComponentChildren } from 'preact'
import { Dialog } from './controls.tsx'
import { TextField } from './fields.tsx'
import { Form, useForm } from './form.tsx'

interface NameDialogProps {
  readonly title: string
  /** The present name. */
  readonly name?: string
  readonly hint?: string
  /** The text of the button. */
  readonly action?: string
  /** Told the name while it is typed, without spaces around it. */
  readonly onType?: (name: string) => void
  readonly save: (name: string) => Promise<unknown>
  readonly close: () => void
  readonly children?: ComponentChildren
}

/** Asks for the name of something, and keeps that under it. */
export function NameDialog({ title, name = '', hint, action = 'Save', ...props }: NameDialogProps) {
  const { onType, save, close, children } = props
  const form = useForm({ name })
  const field = form.field('name')
  const type = (text: string) => {
    field.set(text)
    onType?.(text.trim())
  }
  const send = async () => {
    await save(form.draft.name.trim())
    close()
  }
  return (
    <Dialog title={title} close={close}>
      <Form form={form} submit={send} action={action}>
        <TextField {...field} set={type} label="Name" hint={hint} required />
        {children}
      </Form>
    </Dialog>
  )
}
