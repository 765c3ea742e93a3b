import { useEffect, useRef } from 'preact/hooks'

/** Handles key presses of the whole page while the component is shown. @param handle returns true for its own keys */
export function useKeys(handle: (event: KeyboardEvent) => boolean): void {
  const current = useRef(handle)
  current.current = handle
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
      if (document.querySelector('dialog[open]') !== null) return
      if (current.current(event)) event.preventDefault()
    }
    addEventListener('keydown', listen)
    return () => removeEventListener('keydown', listen)
  }, [])
}

/** The key belongs to a field. */
export function isTyping({ target }: Event): boolean {
  const element = target as HTMLElement
  return /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName) || element.isContentEditable || element.shadowRoot !== null
}
