import { render } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { type Document, endpointsOf, loadDocument } from './document.ts'
import { Markdown } from './markdown.tsx'
import { OperationView } from './operation-view.tsx'
import { storedKey, storeKey } from './try-it.tsx'

/** The API reference: every operation of the OpenAPI document, with samples, schemas and a form that calls it. */

/** The theme is stored under the same name as the dashboard's, so that both pages share it. */
const STORED = 'theme'
const THEMES = ['system', 'light', 'dark']
const themeOf = () => THEMES.find((name) => name === localStorage.getItem(STORED)) ?? 'system'

function applyTheme(): void {
  const theme = themeOf()
  document.documentElement.dataset.theme = theme
}

function Reference({ reference }: { readonly reference: Document }) {
  const [theme, setTheme] = useState(themeOf)
  const [text, setText] = useState('')
  const [opened, setOpened] = useState<ReadonlySet<string>>(new Set())
  const groups = useMemo(
    () => reference.tags.map((tag) => ({ ...tag, endpoints: endpointsOf(reference, tag.name) })),
    [reference],
  )
  /** `#/Ingest/startRun` opens that operation. */
  const follow = () => {
    const [, tag, id] = decodeURIComponent(location.hash).split('/')
    if (tag === undefined || id === undefined) return
    setText('')
    setOpened((now) => now.union(new Set([id])))
    requestAnimationFrame(() => document.getElementById(`operations-${tag}-${id}`)?.scrollIntoView())
  }
  useEffect(() => {
    follow()
    addEventListener('hashchange', follow)
    return () => removeEventListener('hashchange', follow)
  }, [])
  const nextTheme = () => {
    const next = THEMES[(THEMES.indexOf(themeOf()) + 1) % THEMES.length] as string
    localStorage.setItem(STORED, next)
    applyTheme()
    setTheme(next)
  }
  const wanted = text.trim().toLowerCase()
  const matches = (...texts: readonly (string | undefined)[]) => texts.join(' ').toLowerCase().includes(wanted)
  return (
    <>
      <header class="docs-head">
        <a href="/">Dashboard</a>
        <a href="/docs/json">OpenAPI document</a>
        <a href="/llms.txt">Guides</a>
        <label>
          Key to try calls with{' '}
          <input
            type="password"
            autocomplete="off"
            placeholder="svc_ws_…"
            defaultValue={storedKey()}
            onInput={({ currentTarget }) => storeKey(currentTarget.value)}
          />
        </label>
        <button type="button" id="theme" onClick={nextTheme}>
          Theme: {theme}
        </button>
      </header>
      <main id="reference">
        <h1 class="title">
          {reference.info.title} <small>{reference.info.version}</small>
        </h1>
        <div class="info">
          <Markdown text={reference.info.description} />
        </div>
        <input
          class="find"
          type="search"
          aria-label="Find an operation"
          placeholder="Find an operation: a path, or a word of its summary"
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
        {groups.map(({ name, description, endpoints }) => {
          const shown = endpoints.filter(({ method, path, operation: { summary, operationId } }) =>
            matches(method, path, summary, operationId, name),
          )
          if (shown.length === 0) return null
          return (
            <section key={name} aria-label={name}>
              <h2>{name}</h2>
              {description !== undefined && <Markdown text={description} />}
              {shown.map((endpoint) => {
                const { operationId: id } = endpoint.operation
                return (
                  <OperationView
                    key={id}
                    {...endpoint}
                    document={reference}
                    tag={name}
                    isOpen={opened.has(id)}
                    toggle={() => setOpened(opened.symmetricDifference(new Set([id])))}
                  />
                )
              })}
            </section>
          )
        })}
      </main>
    </>
  )
}

applyTheme()
addEventListener('storage', applyTheme)
loadDocument().then(
  (reference) => render(<Reference reference={reference} />, document.body),
  (error) => render(<p role="alert">The OpenAPI document could not be loaded: {String(error)}</p>, document.body),
)
