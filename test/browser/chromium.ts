import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../support/eventually.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome']
const MAC = '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'

/** Finds the Chromium of this machine; null if there is none, and the browser tests are skipped. */
export function findChromium(): string | null {
  const found = NAMES.map((name) => Bun.which(name)).find((path) => path !== null)
  return found ?? (existsSync(MAC) ? MAC : null)
}

/** A page in its own headless browser, driven through the DevTools protocol. */
export interface BrowserPage {
  /** Resolves once the page has loaded. */
  open(url: string): Promise<void>
  /** The value of an expression, awaited. Throws what the page throws. */
  evaluate<T>(expression: string): Promise<T>
  /** Any other command of the protocol. */
  send<T>(method: string, params?: object): Promise<T>
  /** Messages logged and errors thrown by the page, and the URLs requested by the browser. */
  readonly complaints: string[]
  readonly requests: string[]
}

const FLAGS = [
  '--headless',
  '--window-size=1280,900',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--remote-debugging-port=0',
]

/** Starts a browser that ends with the tests. */
export async function launch(executable: string): Promise<BrowserPage> {
  const profile = await temporaryDirectory()
  const browser = Bun.spawn([executable, ...FLAGS, `--user-data-dir=${profile}`, 'about:blank'], {
    stdout: 'ignore',
    stderr: 'ignore',
  })
  atEnd(async () => {
    browser.kill('SIGKILL')
    await browser.exited
  })
  const portFile = Bun.file(join(profile, 'DevToolsActivePort'))
  const port = await eventually(async () => Number.parseInt(await portFile.text(), 10) || false)
  const target = await eventually(async () => {
    const targets = (await (await fetch(`http://127.0.0.1:${port}/json`)).json()) as Target[]
    return targets.find(({ type }) => type === 'page') ?? false
  })
  return connect(target.webSocketDebuggerUrl)
}

interface Target {
  readonly type: string
  readonly webSocketDebuggerUrl: string
}

interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: { readonly request?: { readonly url: string } }
  readonly result?: unknown
  readonly error?: { readonly message: string }
}

interface Evaluated<T> {
  readonly result: { readonly value: T }
  readonly exceptionDetails?: { readonly exception?: { readonly description?: string } }
}

async function connect(address: string): Promise<BrowserPage> {
  const socket = new WebSocket(address)
  const answers = new Map<number, (message: Message) => void>()
  const complaints: string[] = []
  const requests: string[] = []
  let loaded = Promise.withResolvers<void>()
  let lastId = 0
  socket.addEventListener('message', ({ data }) => {
    const message = JSON.parse(String(data)) as Message
    if (message.id !== undefined) return answers.get(message.id)?.(message)
    if (message.method === 'Page.loadEventFired') loaded.resolve()
    if (message.method === 'Network.requestWillBeSent') requests.push(message.params?.request?.url ?? '')
    if (message.method === 'Runtime.exceptionThrown' || message.method === 'Log.entryAdded')
      complaints.push(JSON.stringify(message.params))
  })
  await new Promise((resolve) => socket.addEventListener('open', resolve))

  async function send<T>(method: string, params: object = {}): Promise<T> {
    const id = ++lastId
    const answer = new Promise<Message>((resolve) => answers.set(id, resolve))
    socket.send(JSON.stringify({ id, method, params }))
    const { result, error } = await answer
    answers.delete(id)
    if (error !== undefined) throw new Error(`${method}: ${error.message}`)
    return result as T
  }
  for (const domain of ['Page', 'Runtime', 'Network', 'Log']) await send(`${domain}.enable`)

  return {
    complaints,
    requests,
    send,
    async open(url) {
      loaded = Promise.withResolvers()
      await send('Page.navigate', { url })
      await loaded.promise
    },
    async evaluate<T>(expression: string): Promise<T> {
      const params = { expression, awaitPromise: true, returnByValue: true }
      const { result, exceptionDetails } = await send<Evaluated<T>>('Runtime.evaluate', params)
      if (exceptionDetails !== undefined) throw new Error(exceptionDetails.exception?.description ?? 'the page threw')
      return result.value
    },
  }
}
