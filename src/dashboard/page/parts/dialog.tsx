import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { Icon } from './icons.tsx'

interface DialogProps {
  readonly title: string
  readonly close: () => void
  readonly children: ComponentChildren
}

/** A dialog over the page. The browser keeps the focus in it, and gives it back when it closes. */
export function Dialog({ title, close, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const heading = useId()
  useEffect(() => element.current?.showModal(), [])
  return (
    <dialog ref={element} aria-labelledby={heading} onClose={close}>
      <div class="dialog-head">
        <h2 id={heading}>{title}</h2>
        <button type="button" class="icon-only" aria-label="Close" onClick={() => element.current?.close()}>
          <Icon name="close" />
        </button>
      </div>
      {children}
    </dialog>
  )
}
