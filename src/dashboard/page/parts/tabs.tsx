import { address, setQuery } from '../context/router.ts'

interface TabsProps {
  readonly label: string
  /** The member of the address's query that says which is open. */
  readonly name: string
  readonly tabs: Readonly<Record<string, string>>
  readonly badge?: Readonly<Record<string, string>>
}

/** The name of the open tab; the first one by default. */
export function openTab({ name, tabs }: Pick<TabsProps, 'name' | 'tabs'>): string {
  const named = address.value.query[name]
  return named !== undefined && Object.hasOwn(tabs, named) ? named : (Object.keys(tabs)[0] as string)
}

/** Parts of a view, of which one is shown. */
export function Tabs({ label, name, tabs, badge }: TabsProps) {
  const open = openTab({ name, tabs })
  const [first] = Object.keys(tabs)
  return (
    <div class="tabs" role="group" aria-label={label}>
      {Object.entries(tabs).map(([tab, title]) => (
        <button
          key={tab}
          type="button"
          aria-pressed={tab === open}
          onClick={() => setQuery({ [name]: tab === first ? null : tab })}
        >
          {title}
          {badge?.[tab] && <span class="tab-badge">{badge[tab]}</span>}
        </button>
      ))}
    </div>
  )
}
