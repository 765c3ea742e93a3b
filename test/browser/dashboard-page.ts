import { eventually } from '../support/eventually.ts'
import { type BrowserPage, findChromium, launch } from './chromium.ts'

export const chromium = await findChromium()

/** Text that would do harm if it were ever parsed as HTML, and that reverses what follows it where it is obeyed. */
export const HOSTILE = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>\u202egpj.`
/** How the page shows it. */
export const SHOWN = HOSTILE.replace('\u202e', '\\u202e')

/** Collects all text of the page that changes its own direction. */
const COLLECT_REVERSED = `
  globalThis.reversed = []
  const check = (text) => { if (/[\u202a-\u202e\u2066-\u2069]/.test(text)) reversed.push(text) }
  const read = (node) => {
    if (node.nodeType === 3) check(node.data)
    for (const { name, value } of node.attributes ?? []) check(name === 'value' ? '' : value)
    node.childNodes.forEach(read)
  }
  new MutationObserver((changes) => changes.forEach(({ target }) => read(target)))
    .observe(document, { subtree: true, childList: true, characterData: true, attributes: true })`

/** The dashboard in a real browser, used as people use it. Everything waits until it is so. */
export interface DashboardPage extends BrowserPage {
  newTab(url: string): Promise<DashboardPage>
  /** Waits for an expression to be truthy. */
  until(condition: string): Promise<unknown>
  /** Waits until an element contains a text. */
  shows(selector: string, text: string): Promise<unknown>
  text(selector: string): Promise<string>
  count(selector: string): Promise<number>
  /** Clicks on the first element, or on the one with this text, once it is there. */
  click(selector: string, text?: string): Promise<void>
  /** Replaces the value of a field, as typing does. */
  fill(selector: string, value: string): Promise<void>
  /** Chooses the option with this text. */
  choose(selector: string, option: string): Promise<void>
  press(key: string, modifiers?: number): Promise<void>
  /** Goes to an address of the page without loading it again. */
  go(hash: string): Promise<void>
  signIn(key: string): Promise<void>
  /** Text since the page was loaded that was obeyed instead of shown. */
  reversed(): Promise<string[]>
  /** What the page has logged, besides failed requests of the expected statuses. */
  complaintsBeside(statuses: string): string[]
}

export async function openDashboard(url: string): Promise<DashboardPage> {
  const page = dashboardPage(await launch(chromium as string))
  await page.send('Page.addScriptToEvaluateOnNewDocument', { source: COLLECT_REVERSED })
  await page.open(url)
  return page
}

export function dashboardPage(browser: BrowserPage): DashboardPage {
  const { evaluate, send } = browser
  const quoted = (text: string) => JSON.stringify(text)
  const all = (selector: string) => `[...document.querySelectorAll(${quoted(selector)})]`
  const first = (selector: string) => `document.querySelector(${quoted(selector)})`
  const until = (condition: string) =>
    eventually(() => evaluate<boolean>(`Boolean(${condition})`).catch(() => false), { intervalMs: 30 }).catch(
      async (error) => {
        const shown = await evaluate<string>('location.hash + ": " + document.body.innerText').catch(String)
        throw new Error(`the page does not fulfil ${condition}; it shows ${shown.slice(0, 2_000)}`, { cause: error })
      },
    )

  async function press(key: string, modifiers = 0): Promise<void> {
    const code = { Backspace: 8, Tab: 9, Enter: 13, Escape: 27, End: 35 }[key] ?? key.toUpperCase().charCodeAt(0)
    const event = { key, code: key, windowsVirtualKeyCode: code, modifiers }
    await send('Input.dispatchKeyEvent', {
      type: 'keyDown',
      ...event,
      ...(key.length === 1 && { text: key }),
      ...(key === 'Enter' && { text: '\r' }),
    })
    await send('Input.dispatchKeyEvent', { type: 'keyUp', ...event })
  }

  async function fill(selector: string, value: string): Promise<void> {
    await until(first(selector))
    await evaluate(
      `((field) => (field.value = ${quoted(value)}, field.dispatchEvent(new Event('input', { bubbles: true }))))(${first(selector)})`,
    )
  }

  return {
    ...browser,
    newTab: async (url) => dashboardPage(await browser.newTab(url)),
    until,
    press,
    fill,
    shows: (selector, text) => until(`${all(selector)}.some((each) => each.textContent.includes(${quoted(text)}))`),
    text: (selector) => evaluate<string>(`${all(selector)}.map((each) => each.textContent).join(' ')`),
    count: (selector) => evaluate<number>(`${all(selector)}.length`),
    async click(selector, text) {
      const found =
        text === undefined
          ? first(selector)
          : `${all(selector)}.find((each) => each.textContent.trim() === ${quoted(text)})`
      // Nobody can click behind an open dialog.
      await until(
        `${found} && !${found}.disabled && (!document.querySelector('dialog:modal') || ${found}.closest('dialog'))`,
      )
      await evaluate(`void ${found}.click()`)
    },
    async choose(selector, option) {
      const found = `[...(${first(selector)}?.options ?? [])].find((each) => each.textContent === ${quoted(option)})`
      await until(found)
      await evaluate(
        `((field) => (field.value = ${found}.value, field.dispatchEvent(new Event('change', { bubbles: true }))))(${first(selector)})`,
      )
    },
    go: (hash) => evaluate(`void (location.hash = ${quoted(hash)})`),
    async signIn(key) {
      const field = first('.prompt input[type=password]')
      await until(field)
      await evaluate(`(${field}.value = '', ${field}.focus())`)
      await send('Input.insertText', { text: key })
      await evaluate(`${first('.prompt button[type=submit]')}.click()`)
    },
    reversed: () => evaluate<string[]>('reversed'),
    // A browser logs each response of status 400 and above. On a busy machine /readyz may say for a moment 503.
    complaintsBeside: (statuses) =>
      browser.complaints.filter((complaint) => !new RegExp(`status of (${statuses}|503.*/readyz)`).test(complaint)),
  }
}
