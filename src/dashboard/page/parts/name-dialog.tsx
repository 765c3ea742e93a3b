import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useAttempt } from '../data/loading.ts'
import { Button, Dialog } from './controls.tsx'
import { Field } from './fields.tsx'

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
export function NameDialog({ title, name: present = '', hint, action = 'Save', ...props }: NameDialogProps) {
  const { onType, save, close, children } = props
  const [name, setName] = useState(present)
  const { problem, submit } = useAttempt()
  const type = (text: string) => {
    setName(text)
    onType?.(text.trim())
  }
  const send = submit(async () => {
    await save(name.trim())
    close()
  })
  return (
    <Dialog title={title} close={close}>
      <form onSubmit={send}>
        <Field label="Name" hint={hint} problem={problem}>
          <input required value={name} onInput={({ currentTarget }) => type(currentTarget.value)} />
        </Field>
        {children}
        <div class="actions">
          <Button type="submit" class="primary" text={action} />
        </div>
      </form>
    </Dialog>
  )
}
