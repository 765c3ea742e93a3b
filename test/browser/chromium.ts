import { existsSync } from 'node:fs'
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliDecompress } from 'node:zlib'
import { eventually } from '../support/eventually.ts'
import { atEnd, temporaryDirectory } from '../support/teardown.ts'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome']
const MAC = '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'
/** Contains a Chromium for Linux on x64, and the libraries that it needs. */
const PACKAGE = '@sparticuz/chromium'

/**
 * Finds a Chromium: that of this machine, or the one of an npm package. Null where there is neither, which is an error in
 * CI; elsewhere the browser tests are skipped.
 */
export async function findChromium(): Promise<string | null> {
  const found = NAMES.map((name) => Bun.which(name)).find((path) => path !== null)
  if (found !== undefined) return found
  if (existsSync(MAC)) return MAC
  if (process.platform === 'linux' && process.arch === 'x64') return unpacked()
  if (process.env.CI === 'true') throw new Error('the browser tests need a Chromium on this machine')
  return null
}

/** Unpacks the Chromium of the package into the package's own folder, once. */
async function unpacked(): Promise<string> {
  const source = join(dirname(Bun.resolveSync(PACKAGE, import.meta.dir)), '..', 'bin')
  const target = join(source, '..', 'unpacked')
  const executable = join(target, 'chromium')
  if (existsSync(executable)) return executable
  const unpack = async (name: string) => promisify(brotliDecompress)(await readFile(join(source, name)))
  await mkdir(target, { recursive: true })
  // Other test files may do the same at the same time: each file appears as a whole.
  const own = join(target, `chromium.${process.pid}`)
  const [browser, libraries] = await Promise.all([unpack('chromium.br'), unpack('al2023.tar.br')])
  for (const [path, content] of await new Bun.Archive(libraries).files()) {
    await Bun.write(join(target, path), content)
  }
  await writeFile(own, browser)
  await chmod(own, 0o755)
  await rename(own, executable)
  return executable
}

/** A page in its own headless browser, driven through the DevTools protocol. */
export interface BrowserPage {
  /** Resolves once the page has loaded. */
  open(url: string): Promise<void>
  /** The value of an expression, awaited. Throws what the page throws. */
  evaluate<T>(expression: string): Promise<T>
  /** Opens another tab of the same browser, in front of this one. */
  newTab(url: string): Promise<BrowserPage>
  /** Closes the tab. */
  close(): Promise<void>
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

/** A page that does not answer for so long hangs. */
const ANSWER_MS_MAX = 60_000

/** Starts a browser that ends with the tests. */
export async function launch(executable: string): Promise<BrowserPage> {
  const profile = await temporaryDirectory()
  const libraries = join(dirname(executable), 'lib')
  const browser = Bun.spawn([executable, ...FLAGS, `--user-data-dir=${profile}`, 'about:blank'], {
    // Without a locale, as in many containers, `navigator.language` is en-US@posix, which is no language tag.
    env: { ...process.env, LC_ALL: 'C.UTF-8', ...(existsSync(libraries) && { LD_LIBRARY_PATH: libraries }) },
    stdout: 'ignore',
    stderr: 'ignore',
    // A process group of its own: Debian's `chromium` is a script that waits for the browser.
    detached: true,
  })
  atEnd(async () => {
    process.kill(-browser.pid, 'SIGKILL')
    await browser.exited
  })
  const portFile = Bun.file(join(profile, 'DevToolsActivePort'))
  const port = await eventually(async () => Number.parseInt(await portFile.text(), 10) || false)
  const target = await eventually(async () => {
    const targets = (await (await fetch(`http://127.0.0.1:${port}/json`)).json()) as Target[]
    return targets.find(({ type }) => type === 'page') ?? false
  })
  return connect(target, port)
}

interface Target {
  readonly id: string
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

async function connect({ id: targetId, webSocketDebuggerUrl }: Target, port: number): Promise<BrowserPage> {
  const socket = new WebSocket(webSocketDebuggerUrl)
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
    const { promise, resolve, reject } = Promise.withResolvers<Message>()
    answers.set(id, resolve)
    const timer = setTimeout(() => reject(new Error(`${method}: the page hangs`)), ANSWER_MS_MAX)
    socket.send(JSON.stringify({ id, method, params }))
    const { result, error } = await promise.finally(() => clearTimeout(timer))
    answers.delete(id)
    if (error !== undefined) throw new Error(`${method}: ${error.message}`)
    return result as T
  }
  for (const domain of ['Page', 'Runtime', 'Network', 'Log']) await send(`${domain}.enable`)

  return {
    complaints,
    requests,
    send,
    async newTab(url) {
      const answer = await fetch(`http://127.0.0.1:${port}/json/new?${encodeURIComponent(url)}`, { method: 'PUT' })
      return connect((await answer.json()) as Target, port)
    },
    async close() {
      await fetch(`http://127.0.0.1:${port}/json/close/${targetId}`)
    },
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
