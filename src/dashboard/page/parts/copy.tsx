import { useEffect, useState } from 'preact/hooks'
import { Icon, type IconName } from './icons.tsx'

const SHOWN_MS = 1_500

interface CopyProps {
  /** Computed on click, because it may be long. */
  readonly text: () => string
  /** What is copied, as in "Copy id". */
  readonly label: string
  readonly icon?: IconName
  /** Shows the label beside the icon. */
  readonly isLabelled?: boolean
}

/** Copies a text to the clipboard, and says so. */
export function CopyButton({ text, label, icon = 'copy', isLabelled = false }: CopyProps) {
  const [state, setState] = useState<'idle' | 'done' | 'failed'>('idle')
  useEffect(() => {
    if (state === 'idle') return
    const timer = setTimeout(setState, SHOWN_MS, 'idle')
    return () => clearTimeout(timer)
  }, [state])
  const copy = () =>
    writeClipboard(text()).then(
      () => setState('done'),
      () => setState('failed'),
    )
  const said = state === 'done' ? 'Copied' : state === 'failed' ? 'The browser refused' : label
  return (
    <button type="button" class={isLabelled ? 'small' : 'icon-only'} onClick={copy} title={said} aria-label={said}>
      <Icon name={state === 'done' ? 'check' : icon} />
      {isLabelled && <span>{said}</span>}
    </button>
  )
}

/** Without TLS, and not on this machine, browsers have no clipboard API. @throws Error if the browser refuses */
async function writeClipboard(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text)
  const field = document.createElement('textarea')
  field.value = text
  document.body.append(field)
  field.select()
  const isCopied = document.execCommand('copy')
  field.remove()
  if (!isCopied) throw new Error('the browser refuses to copy')
}

/** The end of an identifier, with a button that copies the whole. */
export function Id({ id, what = 'id' }: { readonly id: string; readonly what?: string }) {
  return (
    <span class="id">
      <code title={id}>…{id.slice(-8)}</code>
      <CopyButton text={() => id} label={`Copy ${what}`} />
    </span>
  )
}
