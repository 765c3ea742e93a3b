import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { Icon, type IconName } from './icons.tsx'

interface MenuProps {
  readonly label: string
  readonly icon: IconName
  /** The heading of what opens. */
  readonly title: string
  readonly children: ComponentChildren
}

/** A button that opens controls below it. A click elsewhere and Escape close it. */
export function Menu({ label, icon, title, children }: MenuProps) {
  const menu = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    const element = menu.current as HTMLDetailsElement
    const aborting = new AbortController()
    const { signal } = aborting
    const close = (event: Event) => {
      if (!element.contains(event.target as Node)) element.open = false
    }
    document.addEventListener('pointerdown', close, { signal })
    document.addEventListener('focusin', close, { signal })
    const closeByKey = (event: KeyboardEvent) => {
      if (event.key !== 'Escape' || !element.open) return
      event.stopPropagation()
      element.open = false
      element.querySelector('summary')?.focus()
    }
    element.addEventListener('keydown', closeByKey, { signal })
    return () => aborting.abort()
  }, [])
  return (
    <details ref={menu} class="menu">
      <summary class="button small" aria-label={label}>
        <Icon name={icon} />
        <span>{label}</span>
      </summary>
      <fieldset class="menu-body">
        <legend>{title}</legend>
        {children}
      </fieldset>
    </details>
  )
}
