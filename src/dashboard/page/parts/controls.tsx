import type { ButtonHTMLAttributes, ComponentChildren } from 'preact'
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { address, setQuery } from '../context/router.ts'
import { useRefusal } from '../context/session.ts'
import type { Role } from '../data/records.ts'

/** Line icons of 16 units, drawn for this page. They are decoration: what they stand for is always also a text. */
const PATHS = {
  overview: 'M2 13h12M4 13V8m4 5V3m4 10V6',
  runs: 'M5.5 4h8m-8 4h8m-8 4h8M2.5 4h.01M2.5 8h.01M2.5 12h.01',
  live: 'M1.5 8h3l2-5 3 10 2-5h3',
  waiting: 'M8 4.5V8l2.3 1.5M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0Z',
  sessions: 'M2 3.5h9v6H6L3.5 12V9.5H2Zm5 8h3l2.5 2v-2H14v-5',
  users:
    'M6 7.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5ZM1.500 13.500c.4-2.500 2.100-3.700 4.500-3.700s4.100 1.200 4.500 3.700M10.500 7.300a2.300 2.300 0 0 0 0-4.600m1.500 7.400c1.400.5 2.300 1.600 2.500 3.400',
  agents: 'M4 6h8v7H4zM8 6V3M2 8.5v2m12-2v2M6.5 9h.01M9.5 9h.01M6.5 3h3',
  sql: 'M3 4c0-1 2.2-1.8 5-1.8S13 3 13 4s-2.2 1.800-5 1.800S3 5 3 4Zm0 0v8c0 1 2.200 1.800 5 1.800s5-.8 5-1.800V4M3 8c0 1 2.200 1.800 5 1.800S13 9 13 8',
  alerts: 'M4 7a4 4 0 0 1 8 0c0 3.500 1.500 4 1.500 5h-11c0-1 1.500-1.500 1.500-5Zm2.500 5a1.500 1.500 0 0 0 3 0',
  webhooks: 'M2 8h6m0 0a3 3 0 1 0 6 0 3 3 0 0 0-6 0ZM5 5 2 8l3 3',
  keys: 'M9.500 6.500a3 3 0 1 1-6 0 3 3 0 0 1 6 0Zm-.9 2.100L14 14m-2.500-2.500L13 10',
  settings: 'M2 4.500h6m4 0h2M2 11.500h2m4 0h6M10 6.500a2 2 0 1 0 0-4 2 2 0 0 0 0 4Zm-4 7a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z',
  api: 'M5.500 4.500 2 8l3.500 3.500m5-7L14 8l-3.500 3.500',
  sun: 'M8 5.200a2.800 2.800 0 1 0 0 5.600 2.800 2.800 0 0 0 0-5.600ZM8 1.500v1.300m0 10.400v1.300M1.500 8h1.300m10.400 0h1.300M3.400 3.400l.9.9m7.400 7.400.9.9m0-9.200-.9.9m-7.400 7.400-.9.9',
  moon: 'M13.500 9.700A5.700 5.700 0 0 1 6.300 2.500a5.700 5.700 0 1 0 7.200 7.200Z',
  clock: 'M8 4.500V8l2.300 1.500M14 8A6 6 0 1 1 2 8a6 6 0 0 1 12 0Z',
  leave: 'M6.500 2.500h-4v11h4M10.500 5l3 3-3 3m3-3h-8',
  copy: 'M5.500 5.500h8v8h-8zm-2.500 5h-.5v-8h8V3',
  check: 'm3 8.500 3.200 3.200L13 4.500',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10Zm3.600-1.400L14 14',
  close: 'm4 4 8 8m0-8-8 8',
  back: 'M9.500 3.500 5 8l4.500 4.500',
  fold: 'm4 6 4 4 4-4',
  end: 'm4 3.5 4 4 4-4M4 12.500h8',
  play: 'M4.500 3v10l8-5Z',
  pause: 'M5.500 3v10m5-10v10',
  stop: 'M4 4h8v8H4z',
  retry: 'M13 8a5 5 0 1 1-1.500-3.600M13 2v3h-3',
  download: 'M8 2v8m-3.500-3L8 10.500 11.500 7M2.500 13.500h11',
  terminal: 'm3 5 3 3-3 3m4.500.5H13',
  plus: 'M8 3v10M3 8h10',
  model: 'M8 1.800 9.600 6.400 14.200 8 9.600 9.600 8 14.200 6.400 9.600 1.800 8l4.600-1.600Z',
  tool: 'M13.500 4.200 11 6.700 9.300 5l2.500-2.500a3.600 3.600 0 0 0-4.700 4.700L2.500 11.800l1.700 1.700L8.800 9a3.600 3.600 0 0 0 4.700-4.800Z',
  task: 'M3 3h10v10H3zm2.500 5 1.700 1.700 3.300-3.400',
  person:
    'M8 7.500a2.700 2.700 0 1 0 0-5.400 2.700 2.700 0 0 0 0 5.400Zm-5.500 6c.5-2.600 2.700-4 5.500-4s5 1.400 5.500 4',
  warning: 'M8 2 14.500 13.500h-13ZM8 6.500v3m0 2v.01',
  columns: 'M2.500 3h11v10h-11zm3.700 0v10m3.600-10v10',
  filter: 'M2 3.500h12L9.500 9v4l-3 1V9Z',
  boards: 'M2.5 2.5h5v5h-5zm7 0h4v5h-4zm-7 7h5v4h-5zm7 0h4v4h-4z',
  pin: 'M9.500 2 14 6.500l-2.500.7-3 3L8 13 3 8l2.800-.5 3-3ZM5.500 10.500 2 14',
  edit: 'M10.500 3 13 5.500 5.500 13 2.500 13.500 3 10.500Z',
  event: 'M8 5.500a2.500 2.500 0 1 0 0 5 2.500 2.500 0 0 0 0-5ZM8 2v1.500m0 9V14m6-6h-1.500m-9 0H2',
  file: 'M4 1.500h5l3 3v10H4zm5 0v3h3',
  left: 'M7 3.500 2.500 8 7 12.500M2.500 8h11',
  right: 'M9 3.500 13.500 8 9 12.500M13.500 8h-11',
  menu: 'M2.500 4.500h11m-11 3.500h11m-11 3.500h11',
  scores: 'm8 2 1.800 3.800 4.200.5-3.100 2.900.8 4.100L8 11.300l-3.700 2 .8-4.100L2 6.300l4.200-.5Z',
  'thumb-up':
    'M5 7.500 7.500 2c1.200 0 1.800.8 1.600 1.900L8.700 6.500h3.700c.9 0 1.400.7 1.200 1.500l-1.100 4.700c-.2.5-.6.8-1.100.8H5Zm0 6H2.500v-6H5Z',
  'thumb-down':
    'M5 8.500 7.500 14c1.200 0 1.800-.8 1.600-1.900L8.700 9.500h3.700c.9 0 1.400-.7 1.200-1.500l-1.100-4.700c-.2-.5-.6-.8-1.100-.8H5Zm0-6H2.500v6H5Z',
} as const

export type IconName = keyof typeof PATHS

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  )
}

const SHOWN_MS = 1_500

interface ButtonProps extends Omit<ButtonHTMLAttributes, 'children'> {
  readonly icon?: IconName
  /** Without it, the button shows only its icon, and needs a `label`. */
  readonly text?: string | undefined
  readonly label?: string
  /** People with a lower role cannot use it; its title then says why. */
  readonly needs?: Role
}

/** A button with a text, an icon, or both. It submits a form only if its `type` says so. */
export function Button({ icon, text, label, needs, ...attributes }: ButtonProps) {
  const refusal = useRefusal(needs)
  const refused = refusal === undefined ? {} : { disabled: true, title: refusal }
  return (
    <button
      type="button"
      class={text === undefined ? 'icon-only' : undefined}
      aria-label={label}
      {...attributes}
      {...refused}
    >
      {icon && <Icon name={icon} />}
      {icon && text ? <span>{text}</span> : text}
    </button>
  )
}

interface BackLinkProps {
  readonly href: string
  readonly label: string
  readonly title?: string
}

/** A link from one item back to the list. */
export function BackLink({ href, label, title }: BackLinkProps) {
  return (
    <a class="icon-only back" href={href} aria-label={label} title={title}>
      <Icon name="back" />
    </a>
  )
}

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
  const shownLabel = state === 'done' ? 'Copied' : state === 'failed' ? 'The browser refused' : label
  return (
    <Button
      class={isLabelled ? 'small' : 'icon-only'}
      icon={state === 'done' ? 'check' : icon}
      text={isLabelled ? shownLabel : undefined}
      label={shownLabel}
      title={shownLabel}
      onClick={copy}
    />
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

interface DialogProps {
  readonly title: string
  readonly close: () => void
  readonly children: ComponentChildren
}

/**
 * A dialog over the page. The browser keeps the focus in it, and gives it back when it closes. It begins at the first field,
 * so that what is typed goes there; one that only asks begins at Close, so that Enter does no harm.
 */
export function Dialog({ title, close, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const heading = useId()
  const latest = useRef(close)
  latest.current = close
  // When the cleanup of an ordinary effect runs, the element has gone.
  useLayoutEffect(() => {
    const dialog = element.current as HTMLDialogElement
    const closed = () => latest.current()
    dialog.addEventListener('close', closed)
    dialog.showModal()
    dialog.querySelector<HTMLElement>('form :is(input, textarea, select)')?.focus()
    return () => {
      dialog.removeEventListener('close', closed)
      // Only then the focus goes back to what had it before.
      dialog.close()
    }
  }, [])
  return (
    <dialog ref={element} aria-labelledby={heading}>
      <div class="dialog-head">
        <h2 id={heading}>{title}</h2>
        <Button icon="close" label="Close" onClick={() => element.current?.close()} />
      </div>
      {children}
    </dialog>
  )
}

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

interface TabsProps {
  readonly label: string
  /** The member of the address's query that says which is open. */
  readonly name: string
  readonly tabs: Readonly<Record<string, string>>
  readonly badge?: Readonly<Record<string, string>>
  /** Opens a tab (null: the first one); by default, the query of the address says which is open. */
  readonly onChange?: (tab: string | null) => void
}

/** The name of the open tab; the first one by default. */
export function openTab({ name, tabs }: Pick<TabsProps, 'name' | 'tabs'>): string {
  const named = address.value.query[name]
  return named !== undefined && Object.hasOwn(tabs, named) ? named : (Object.keys(tabs)[0] as string)
}

/** Parts of a view, of which one is shown. */
export function Tabs({ label, name, tabs, badge, onChange = (tab) => setQuery({ [name]: tab }) }: TabsProps) {
  const open = openTab({ name, tabs })
  const [first] = Object.keys(tabs)
  return (
    <fieldset class="tabs" aria-label={label}>
      {Object.entries(tabs).map(([tab, title]) => (
        <button
          key={tab}
          type="button"
          aria-pressed={tab === open}
          onClick={() => onChange(tab === first ? null : tab)}
        >
          {title}
          {badge?.[tab] && <span class="tab-badge">{badge[tab]}</span>}
        </button>
      ))}
    </fieldset>
  )
}
