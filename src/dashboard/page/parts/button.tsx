import type { ButtonHTMLAttributes } from 'preact'
import { Icon, type IconName } from './icons.tsx'

interface ButtonProps extends ButtonHTMLAttributes {
  readonly icon?: IconName
  /** Without it, the button shows only its icon, and needs a `label`. */
  readonly text?: string
  readonly label?: string
}

/** A button with a text, an icon, or both. It submits a form only if its `type` says so. */
export function Button({ icon, text, label, ...attributes }: ButtonProps) {
  return (
    <button type="button" class={text === undefined ? 'icon-only' : undefined} aria-label={label} {...attributes}>
      {icon && <Icon name={icon} />}
      {icon && text ? <span>{text}</span> : text}
    </button>
  )
}
