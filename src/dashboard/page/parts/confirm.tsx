import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useAttempt } from '../data/loading.ts'
import type { Role } from '../data/records.ts'
import { Button, Dialog, type IconName } from './controls.tsx'
import { ProblemText } from './states.tsx'

interface ConfirmButtonProps {
  readonly text: string
  /** Who may use it; by default admins. */
  readonly needs?: Role
  readonly icon?: IconName
  readonly class?: string
  /** The question. */
  readonly title: string
  /** What follows from it. */
  readonly children: ComponentChildren
  /** The text of the button that does it. */
  readonly action: string
  /** The text of the button that leaves all as it is. */
  readonly keep?: string
  /** Nothing is lost by it. */
  readonly isSafe?: boolean
  readonly act: () => Promise<unknown>
}

/** A button that asks before it acts. It has no form, so that Enter in a field of the question does no harm. */
export function ConfirmButton(props: ConfirmButtonProps) {
  const { text, icon, class: name = 'small', title, children, action, keep = 'Keep it', isSafe = false, act } = props
  const { needs = 'admin' } = props
  const [isOpen, setOpen] = useState(false)
  const { problem, attempt } = useAttempt()
  const close = () => setOpen(false)
  const confirm = async () => {
    await act()
    close()
  }
  return (
    <>
      <Button needs={needs} class={name} {...(icon && { icon })} text={text} onClick={() => setOpen(true)} />
      {isOpen && (
        <Dialog title={title} close={close}>
          <div class="dialog-body">
            {children}
            <ProblemText text={problem} />
            <div class="actions">
              <Button class={isSafe ? 'primary' : 'danger'} text={action} onClick={() => void attempt(confirm)} />
              <Button text={keep} onClick={close} />
            </div>
          </div>
        </Dialog>
      )}
    </>
  )
}
