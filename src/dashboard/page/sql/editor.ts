import {
  acceptCompletion,
  autocompletion,
  type CompletionContext,
  type CompletionSource,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
  completionStatus,
  moveCompletionSelection,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { keywordCompletionSource, SQLDialect, type SQLNamespace, schemaCompletionSource } from '@codemirror/lang-sql'
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { type Diagnostic, setDiagnostics } from '@codemirror/lint'
import { Compartment, EditorState } from '@codemirror/state'
import { drawSelection, EditorView, highlightSpecialChars, keymap, lineNumbers, placeholder } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { allVisible, visible } from '../../../base/visible.ts'

/** The SQL editor. It is a chunk of its own, which is loaded with the SQL view. */

interface EditorOptions {
  readonly parent: HTMLElement
  readonly text: string
  readonly onChange: (text: string) => void
  readonly onRun: () => void
}

export interface Editor {
  setText(text: string): void
  /** Tables with their columns, for completion. */
  setSchema(tables: Readonly<Record<string, readonly string[]>>): void
  /** Marks what a message is about. @param position from 0; null for none */
  setProblem(position: number | null, message: string): void
  focus(): void
  destroy(): void
}

const KEYWORDS =
  'select from where group by order having limit offset with as and or not in is null like ilike between case when then else end ' +
  'join left right inner full cross asof any all on using union distinct array final prewhere sample settings format asc desc nulls ' +
  'first last over partition rows range interval grouping sets rollup cube totals explain exists cast true false'
const FUNCTIONS =
  'count countIf sum sumIf avg avgIf min max uniq uniqExact quantile quantiles median any argMin argMax groupArray topK round floor ' +
  'toStartOfInterval toStartOfHour toStartOfDay toStartOfMinute toIntervalSecond toIntervalMinute toIntervalHour toIntervalDay now ' +
  'dateDiff toDate toDateTime toUnixTimestamp if multiIf ifNull coalesce has arrayJoin arrayMap length lower upper position ' +
  'positionCaseInsensitive startsWith toString windowFunnel runningDifference lagInFrame bar'

const CLICKHOUSE = SQLDialect.define({
  keywords: KEYWORDS,
  builtin: FUNCTIONS,
  types: 'String UUID UInt8 UInt16 UInt32 UInt64 Int8 Int32 Int64 Float64 Bool DateTime DateTime64 Array Nullable JSON',
  backslashEscapes: true,
  hashComments: true,
  doubleDollarQuotedStrings: false,
  identifierQuotes: '`"',
  caseInsensitiveIdentifiers: false,
})

const COLOURS = HighlightStyle.define([
  { tag: tags.keyword, color: 'var(--code-keyword)', fontWeight: '600' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--code-string)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--code-number)' },
  { tag: [tags.standard(tags.name), tags.typeName], color: 'var(--code-function)' },
  { tag: tags.comment, color: 'var(--soft)', fontStyle: 'italic' },
])

const THEME = EditorView.theme({
  '&': { backgroundColor: 'var(--sunk)', color: 'var(--text)', fontSize: '13px', borderRadius: '8px' },
  '&.cm-focused': { outline: '2px solid var(--accent)' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.6', maxHeight: '44vh' },
  '.cm-gutters': { backgroundColor: 'transparent', color: 'var(--soft)', border: 'none' },
  // The content is as high as the box, so that a click anywhere in it sets the caret.
  '.cm-content, .cm-gutter': { minHeight: '132px' },
  '.cm-content': { caretColor: 'var(--text)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-placeholder': { color: 'var(--soft)' },
  // The mark of the package is an image in a data URL, which the policy forbids.
  '.cm-lintRange-error': { backgroundImage: 'none', textDecoration: 'underline wavy var(--bad)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--chosen)',
  },
  '.cm-tooltip': {
    backgroundColor: 'var(--panel)',
    color: 'var(--text)',
    border: '1px solid var(--line)',
    borderRadius: '8px',
  },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { backgroundColor: 'var(--accent-fill)', color: '#fff' },
})

/**
 * The editor stands in a shadow root: there, its styles are constructed style sheets, which the content security policy
 * allows, and not style elements, which it forbids.
 */
export function createEditor({ parent, text, onChange, onRun }: EditorOptions): Editor {
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: 'open' })
  const completion = new Compartment()
  const run = () => {
    onRun()
    return true
  }
  const view = new EditorView({
    parent: root as unknown as Element,
    root,
    state: EditorState.create({
      doc: text,
      extensions: [
        keymap.of([{ key: 'Mod-Enter', run }]),
        lineNumbers(),
        history(),
        drawSelection(),
        highlightSpecialChars({ render: shownCharacter }),
        bracketMatching(),
        closeBrackets(),
        placeholder('SELECT …'),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ 'aria-label': 'Query' }),
        CLICKHOUSE.extension,
        completion.of(completionOf({})),
        syntaxHighlighting(COLOURS),
        THEME,
        // Tab leaves the editor, as people with a keyboard expect, unless it takes an offered completion.
        keymap.of([
          { key: 'Tab', run: acceptFirst },
          ...closeBracketsKeymap,
          ...completionKeymap,
          ...historyKeymap,
          ...defaultKeymap,
        ]),
        EditorView.updateListener.of(({ docChanged, state }) => docChanged && onChange(state.doc.toString())),
      ],
    }),
  })
  return {
    setText(to) {
      if (to !== view.state.doc.toString())
        view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: to } })
    },
    setSchema: (tables) => view.dispatch({ effects: completion.reconfigure(completionOf(tables)) }),
    setProblem: (position, message) =>
      view.dispatch(setDiagnostics(view.state, diagnostics(view.state, position, message))),
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  }
}

/** A character of a saved query or a link that cannot be seen. */
function shownCharacter(code: number, description: string | null): HTMLElement {
  const shown = document.createElement('span')
  shown.className = 'cm-specialChar'
  shown.textContent = allVisible(String.fromCodePoint(code))
  shown.title = description ?? ''
  return shown
}

/**
 * Nothing is chosen until an arrow key or Tab, so that Enter is a line break. What the query names itself comes first, and
 * keywords are in capitals; functions are not, because ClickHouse distinguishes their case.
 */
function completionOf(tables: Readonly<Record<string, readonly string[]>>) {
  const schema: SQLNamespace = { ...tables }
  const keywords = keywordCompletionSource(CLICKHOUSE, false, (label, type) =>
    type === 'keyword' ? { label: label.toUpperCase(), type, boost: -1 } : { label, type },
  )
  const sources = [aliasesOf, schemaCompletionSource({ dialect: CLICKHOUSE, schema }), keywords]
  return autocompletion({
    icons: false,
    selectOnOpen: false,
    interactionDelay: 0,
    filterStrict: true,
    override: sources.map(unlessNaming),
  })
}

/** Nothing is offered for a name that is being made up. */
function unlessNaming(source: CompletionSource): CompletionSource {
  return (context) => (context.matchBefore(/\bas\s+\w*$/i) === null ? source(context) : null)
}

/** The names that the query gives to its columns and subqueries. */
function aliasesOf(context: CompletionContext) {
  const word = context.matchBefore(/\w+$/)
  if (word === null || /[.'"`]/.test(context.state.sliceDoc(word.from - 1, word.from))) return null
  const named = context.state.doc.toString().matchAll(/\bas\s+([a-z_]\w*)|\b([a-z_]\w*)\s+as\s*\(/gi)
  const names = new Set([...named].map(([, column, subquery]) => (column ?? subquery) as string))
  return { from: word.from, options: [...names].map((label) => ({ label, type: 'variable', boost: 50 })) }
}

function acceptFirst(view: EditorView): boolean {
  if (completionStatus(view.state) !== 'active') return false
  if (!acceptCompletion(view)) moveCompletionSelection(true)(view) && acceptCompletion(view)
  return true
}

/** The word at the position, or the one before the end. */
function diagnostics(state: EditorState, position: number | null, message: string): Diagnostic[] {
  if (position === null) return []
  const at = Math.max(0, Math.min(position, state.doc.length - 1))
  const word = state.wordAt(at)
  return [
    {
      from: word?.from ?? at,
      to: word?.to ?? Math.min(at + 1, state.doc.length),
      severity: 'error',
      message: visible(message),
    },
  ]
}
