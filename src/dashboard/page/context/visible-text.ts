import { options, type VNode } from 'preact'
import { visible } from '../../../base/visible.ts'

/** Attributes that browsers show or read out. */
const SHOWN = ['title', 'aria-label', 'placeholder', 'alt', 'label'] as const

/**
 * Makes all text of the page pass through {@link visible}, whichever component shows it: each text node and each attribute
 * that people see. Values of fields stay as they are, so that nothing else is sent than what was read.
 */
export function showAllText(): void {
  const next = options.vnode
  options.vnode = (node) => {
    if (node.type === null) showText(node as unknown as { props: unknown })
    else if (typeof node.type === 'string') showAttributes(node.props as Record<string, unknown>)
    next?.(node as VNode)
  }
}

/** The properties of a text node are its text. */
function showText(node: { props: unknown }): void {
  if (typeof node.props === 'string') node.props = visible(node.props)
}

function showAttributes(props: Record<string, unknown>): void {
  for (const name of SHOWN) {
    const value = props[name]
    if (typeof value === 'string') props[name] = visible(value)
  }
}
