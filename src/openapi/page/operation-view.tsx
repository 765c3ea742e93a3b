import { useState } from 'preact/hooks'
import { type Document, type Endpoint, type Response, resolved, type Sample } from './document.ts'
import { Markdown } from './markdown.tsx'
import { Member, SchemaView } from './schema-view.tsx'
import { TryIt } from './try-it.tsx'

/** Stores the language that was chosen for samples. */
const LANGUAGE = 'docs-language'

interface OperationProps extends Endpoint {
  readonly document: Document
  readonly tag: string
  readonly isOpen: boolean
  readonly toggle: () => void
}

/** One operation: a line, which opens to show everything about it. */
export function OperationView({ document, tag, isOpen, toggle, ...endpoint }: OperationProps) {
  const { method, path, operation } = endpoint
  return (
    <section class="operation" id={`operations-${tag}-${operation.operationId}`}>
      <h3>
        <button type="button" aria-expanded={isOpen} onClick={toggle}>
          <span class={`method ${method}`}>{method.toUpperCase()}</span> <code>{path}</code>{' '}
          <span class="summary">{operation.summary}</span>
        </button>
      </h3>
      {isOpen && <Details document={document} {...endpoint} />}
    </section>
  )
}

function Details({ document, ...endpoint }: Endpoint & { readonly document: Document }) {
  const {
    description,
    security,
    parameters = [],
    requestBody,
    responses = {},
    'x-codeSamples': samples,
  } = endpoint.operation
  const keys = (security ?? []).flatMap((each) => Object.keys(each))
  return (
    <div class="details">
      {description !== undefined && <Markdown text={description} />}
      {security !== undefined && (
        <p class="type">{keys.length === 0 ? 'Needs no key.' : `Credentials: ${keys.join(' or ')}.`}</p>
      )}
      {samples !== undefined && <Samples samples={samples} />}
      {parameters.length > 0 && (
        <>
          <h4>Parameters</h4>
          <ul class="members">
            {parameters.map(({ name, in: place, required, schema, description: text }) => (
              <Member
                key={`${place} ${name}`}
                document={document}
                name={name}
                isRequired={required}
                schema={text === undefined ? schema : { ...schema, description: `${text} (${place})` }}
              />
            ))}
          </ul>
        </>
      )}
      {Object.entries(requestBody?.content ?? {}).map(([type, { schema = {} }]) => (
        <div key={type}>
          <h4>
            Body <small>{type}</small>
          </h4>
          <SchemaView document={document} schema={schema} />
        </div>
      ))}
      <h4>Answers</h4>
      <ul class="members">
        {Object.entries(responses).map(([status, response]) => (
          <Answer key={status} document={document} status={status} response={resolved(document, response)} />
        ))}
      </ul>
      <details class="try-it">
        <summary>Try it</summary>
        <TryIt {...endpoint} />
      </details>
    </div>
  )
}

interface AnswerProps {
  readonly document: Document
  readonly status: string
  readonly response: Response
}

function Answer({ document, status, response }: AnswerProps) {
  const [isOpen, setOpen] = useState(false)
  const contents = Object.entries(response.content ?? {})
  return (
    <li>
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>
          <code>{status}</code> {response.description}
        </summary>
        {isOpen &&
          contents.map(([type, { schema = {} }]) => (
            <div key={type}>
              <small>{type}</small>
              <SchemaView document={document} schema={schema} />
            </div>
          ))}
      </details>
    </li>
  )
}

function Samples({ samples }: { readonly samples: readonly Sample[] }) {
  const [chosen, choose] = useState(localStorage.getItem(LANGUAGE))
  const [note, setNote] = useState('Copy')
  const shown = samples.find(({ label }) => label === chosen) ?? (samples[0] as Sample)
  const open = (label: string) => {
    localStorage.setItem(LANGUAGE, label)
    choose(label)
    setNote('Copy')
  }
  const copy = () =>
    (navigator.clipboard?.writeText(shown.source) ?? Promise.reject()).then(
      () => setNote('Copied'),
      () => setNote('The browser refused'),
    )
  return (
    <section class="samples" aria-label="Samples">
      <div class="samples-head">
        {samples.map(({ label }) => (
          <button key={label} type="button" aria-pressed={label === shown.label} onClick={() => open(label)}>
            {label}
          </button>
        ))}
        <button type="button" class="copy-sample" onClick={() => void copy()}>
          {note}
        </button>
      </div>
      <pre>{shown.source}</pre>
    </section>
  )
}
