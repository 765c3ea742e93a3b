import type { IconName } from '../parts/controls.tsx'
import type { BarKind } from './bars.ts'

/** Kinds of steps have a shape and a word each, so that colour is never the only sign. */
export const KINDS: Readonly<Record<BarKind, { readonly icon: IconName; readonly name: string }>> = {
  run: { icon: 'runs', name: 'run' },
  child: { icon: 'agents', name: 'child run' },
  task: { icon: 'task', name: 'task' },
  model: { icon: 'model', name: 'model call' },
  tool: { icon: 'tool', name: 'tool call' },
  wait: { icon: 'person', name: 'wait for a person' },
}
