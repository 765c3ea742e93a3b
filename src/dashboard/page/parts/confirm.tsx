import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useAttempt } from '../data/loading.ts'
import { Button, Dialog, type IconName } from './controls.tsx'
import { ProblemText } from './states.tsx'

interface ConfirmButtonProps {
  readonly text: string
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

/** A button of admins that asks before it acts. It has no form, so that Enter in a field of the question does no harm. */
export function ConfirmButton(props: ConfirmButtonProps) {
  const { text, icon, class: name = 'small', title, children, action, keep = 'Keep it', isSafe = false, act } = props
  const [isOpen, setOpen] = useState(false)
  const { problem, attempt } = useAttempt()
  const close = () => setOpen(false)
  const confirm = async () => {
    await act()
    close()
  }
  return (
    <>
      <Button needs="admin" class={name} {...(icon && { icon })} text={text} onClick={() => setOpen(true)} />
      {isOpen && (
        <Dialog title={title} close={close}>
          {children}
          <ProblemText text={problem} />
          <div class="actions">
            <Button class={isSafe ? 'primary' : 'danger'} text={action} onClick={() => void attempt(confirm)} />
            <Button text={keep} onClick={close} />
          </div>
        </Dialog>
      )}
    </>
  )
}
