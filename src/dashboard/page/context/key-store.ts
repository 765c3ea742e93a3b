/**
 * Where the workspace key is kept. Never in a URL or a cookie. Without "remember", it lasts as long as a tab of this page is
 * open: each tab has it in its session storage, and a new tab asks the open ones for it.
 */

const NAME = 'workspace-key'
const CHANNEL = 'agent-run-dashboard'
/** Other tabs answer within a few milliseconds; if there are none, a tab waits this long. A busy tab may answer later. */
const ANSWER_MS_MAX = 150

type Message = { readonly type: 'ask' } | { readonly type: 'key'; readonly key: string } | { readonly type: 'forget' }

export class KeyStore {
  private readonly channel = new BroadcastChannel(CHANNEL)
  private current: string | null = null
  /** Takes the key that another tab has. */
  private answered: (key: string) => void = () => {}

  /**
   * @param onForgotten called when another tab has forgotten the key
   * @param onLateAnswer called with the key of another tab that {@link find} did not wait for
   */
  constructor(
    onForgotten: () => void,
    private readonly onLateAnswer: (key: string) => void,
  ) {
    this.channel.addEventListener('message', ({ data }: MessageEvent<Message>) => {
      if (data.type === 'key' && this.current === null) this.answered(data.key)
      if (data.type === 'ask' && this.current !== null) this.broadcast({ type: 'key', key: this.current })
      if (data.type === 'forget' && this.current !== null) {
        this.erase()
        onForgotten()
      }
    })
  }

  get isRemembered(): boolean {
    return localStorage.getItem(NAME) !== null
  }

  /** The key of this tab, of the remembered one, or of another open tab; null if there is none. */
  async find(): Promise<string | null> {
    const key = sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME) ?? (await this.askOthers())
    if (key !== null) this.keep(key, this.isRemembered)
    return key
  }

  /** @param remember also after all tabs are closed, until the user forgets it */
  keep(key: string, remember: boolean): void {
    this.current = key
    sessionStorage.setItem(NAME, key)
    if (remember) localStorage.setItem(NAME, key)
  }

  /** Removes the key from all tabs. */
  forget(): void {
    this.erase()
    this.broadcast({ type: 'forget' })
  }

  private erase(): void {
    this.current = null
    sessionStorage.removeItem(NAME)
    localStorage.removeItem(NAME)
  }

  private broadcast(message: Message): void {
    this.channel.postMessage(message)
  }

  private askOthers(): Promise<string | null> {
    const { promise, resolve } = Promise.withResolvers<string | null>()
    this.answered = resolve
    setTimeout(() => {
      this.answered = this.onLateAnswer
      resolve(null)
    }, ANSWER_MS_MAX)
    this.broadcast({ type: 'ask' })
    return promise
  }
}
