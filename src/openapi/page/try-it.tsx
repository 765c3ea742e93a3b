import { useRef, useState } from 'preact/hooks'
import type { Endpoint } from './document.ts'

const BODY_SHOWN_MAX = 200_000
const KEY = 'docs-key'

/** The key for calls of this page, for as long as its tab is open. */
export function storedKey(): string {
  return sessionStorage.getItem(KEY) ?? ''
}

export function storeKey(key: string): void {
  sessionStorage.setItem(KEY, key.trim())
}

interface Answer {
  readonly status: string
  readonly text: string
}

/** A form that calls the operation with the key of the page. */
export function TryIt({ method, path, operation }: Endpoint) {
  const { parameters = [], requestBody } = operation
  const [answer, setAnswer] = useState<Answer | null>(null)
  const calling = useRef<AbortController | null>(null)
  const send = async (event: SubmitEvent) => {
    event.preventDefault()
    calling.current?.abort()
    const aborting = new AbortController()
    calling.current = aborting
    const fields = new FormData(event.currentTarget as HTMLFormElement)
    const show = (status: string, text = '') => aborting.signal.aborted || setAnswer({ status, text })
    show('…')
    const begun = performance.now()
    try {
      const { url, ...init } = requestOf({ method, path, operation }, fields)
      const response = await fetch(url, { ...init, signal: aborting.signal })
      const status = `${response.status} ${response.statusText}, ${Math.round(performance.now() - begun)} ms`
      for await (const text of textsOf(response)) show(status, pretty(text))
    } catch (error) {
      show(String(error))
    }
  }
  const stop = () => {
    calling.current?.abort()
    calling.current = null
    setAnswer((now) => now && { ...now, status: `${now.status} (stopped)` })
  }
  return (
    <form class="try" onSubmit={(event) => void send(event)}>
      {parameters.map(({ name, in: place, required }) => (
        <label key={`${place} ${name}`}>
          {name} <small>{place}</small>
          <input name={`${place} ${name}`} required={required} autocomplete="off" spellcheck={false} />
        </label>
      ))}
      {requestBody !== undefined && (
        <label>
          Body
          <textarea name="body" rows={6} spellcheck={false} defaultValue="{}" />
        </label>
      )}
      <div class="actions">
        <button type="submit">Send</button>
        {answer !== null && (
          <button type="button" onClick={stop}>
            Stop
          </button>
        )}
      </div>
      {answer !== null && (
        <output>
          <b>{answer.status}</b>
          {answer.text !== '' && <pre>{answer.text}</pre>}
        </output>
      )}
    </form>
  )
}

function requestOf({ method, path, operation }: Endpoint, fields: FormData) {
  const given = (place: string) =>
    (operation.parameters ?? []).flatMap(({ name, in: where }): [string, string][] => {
      const value = String(fields.get(`${where} ${name}`) ?? '')
      return where === place && value !== '' ? [[name, value]] : []
    })
  const filled = given('path').reduce((url, [name, value]) => url.replace(`{${name}}`, encodeURIComponent(value)), path)
  const query = new URLSearchParams(given('query')).toString()
  const headers = new Headers(given('header'))
  const key = storedKey()
  if (key !== '' && operation.security?.length !== 0) headers.set('authorization', `Bearer ${key}`)
  const body = fields.get('body')
  if (body !== null) headers.set('content-type', 'application/json')
  return {
    url: query === '' ? filled : `${filled}?${query}`,
    method: method.toUpperCase(),
    headers,
    ...(body !== null && { body: String(body) }),
  }
}

/** The body as far as it has arrived: a feed never ends. */
async function* textsOf(response: Response): AsyncGenerator<string> {
  let text = ''
  yield text
  if (response.body === null) return
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    text += part.value
    yield text.slice(0, BODY_SHOWN_MAX)
    if (text.length > BODY_SHOWN_MAX) return void reader.cancel()
  }
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
