import type { ComponentChildren } from 'preact'

interface FactsProps {
  /** A fact without a value is left out. */
  readonly facts: readonly (readonly [name: string, value: ComponentChildren])[]
}

/** A row of names, each above its value. */
export function Facts({ facts }: FactsProps) {
  return (
    <dl class="facts">
      {facts.map(
        ([name, value]) =>
          value && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  )
}
