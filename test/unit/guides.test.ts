import { expect, test } from 'bun:test'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { TABLES } from '../../src/sql/analytics/tables.ts'
import { continuedBy, PAGES, programOf, readPage, snippetsOf } from '../support/guides.ts'
import { runProgram } from '../support/processes.ts'
import { temporaryDirectory } from '../support/teardown.ts'

/** What every snippet of the documentation is, by the language of its fence; `readme.slow.test.ts` runs them. */

const ROOT = join(import.meta.dir, '..', '..')
const python = Bun.which('python3')
/** Programs; and what is not one: configuration, and in `text` output, sketches and grammars. */
const LANGUAGES = ['sh', 'console', 'ts', 'js', 'python', 'sql', 'json', 'env', 'xml', 'mermaid', 'text']
const README_WORDS_MAX = 800
const GUIDE_WORDS_MAX = 4_000
const ALL = PAGES.flatMap((page) => snippetsOf(page))
const inLanguage = (...languages: string[]) => ALL.filter(({ language }) => languages.includes(language))

test('each fence says what is in it', () => {
  expect(ALL.length).toBeGreaterThan(90)
  expect(ALL.filter(({ language }) => !LANGUAGES.includes(language)).map(({ at }) => at)).toEqual([])
})

test('the README and the guides are short', () => {
  const words = (page: string) => readPage(page).split(/\s+/).length
  expect(words('README.md')).toBeLessThanOrEqual(README_WORDS_MAX)
  const guides = PAGES.filter((page) => page.startsWith('docs/') && page !== 'docs/decisions.md')
  expect(guides.filter((page) => words(page) > GUIDE_WORDS_MAX)).toEqual([])
})

test('the page about SQL lists all tables with their columns', () => {
  const lines = readPage('docs/sql.md').split('\n')
  for (const [name, { columns }] of TABLES) {
    const names = columns.filter(({ isByNameOnly }) => !isByNameOnly).map((column) => column.name)
    // The row of this table refers to that of agents for the settings.
    const listed = name === 'agent_versions' ? names.filter((_, at) => at < 2 || at > names.indexOf('metadata')) : names
    const row = lines.find((line) => line.startsWith(`| \`${name}\` | \``)) ?? `no row for ${name}`
    for (const column of listed) expect(row).toMatch(new RegExp(`\\b${column}\\b`))
  }
})

test('JSON is JSON, and lines of an environment are assignments', () => {
  const isJson = (text: string) => {
    try {
      return JSON.parse(text) !== undefined
    } catch {
      return false
    }
  }
  const bad = [
    ...inLanguage('json').filter(({ text }) => !isJson(text) && !text.trim().split('\n').every(isJson)),
    ...inLanguage('env').filter(
      ({ text }) =>
        !text
          .trim()
          .split('\n')
          .every((line) => /^[A-Z_]+=\S/.test(line)),
    ),
  ]
  expect(bad.map(({ at }) => at)).toEqual([])
})

test('commands are what a shell reads, and use only variables that their page has set', async () => {
  for (const { at, text } of inLanguage('sh', 'console')) {
    const { code, stderr } = await runProgram(['bash', '-n', '-c', text])
    expect({ at, code, stderr }).toEqual({ at, code: 0, stderr: '' })
  }
  const unset = PAGES.flatMap((page) => {
    const before = continuedBy(page)
      .map((each) => programOf(each, 'sh'))
      .join('\n')
    const commands = programOf(page, 'sh', 'console')
    const set = new Set([...`${before}\n${commands}`.matchAll(/\b([A-Z][A-Z_]*)=/g)].map(([, name]) => name))
    const used = [...commands.matchAll(/\$\{?([A-Z][A-Z_]*)/g)].map(([, name]) => name)
    return used.filter((name) => !set.has(name)).map((name) => `${page}: ${name}`)
  })
  expect(unset).toEqual([])
})

test('TypeScript and JavaScript compile, page by page, and so does the code within a line', async () => {
  const project = await temporaryDirectory()
  await symlink(join(ROOT, 'node_modules'), join(project, 'node_modules'))
  const files: Record<string, string> = {}
  for (const page of PAGES) {
    const name = page.replaceAll(/\W/g, '-')
    for (const language of ['ts', 'js']) {
      const code = programOf(page, language)
      if (code !== '') files[`${name}.${language}`] = `${code}\nexport {}\n`
    }
    for (const [i, [, code]] of [...readPage(page).matchAll(/`(client\.[^`]*=>[^`]*)`/g)].entries())
      files[`${name}-${i}.ts`] =
        `import { Client } from 'agent-run-service-client'\nconst client = new Client()\n${code}\n`
  }
  for (const [name, code] of Object.entries(files)) await Bun.write(join(project, name), code)
  const compilerOptions = {
    ...{ target: 'ESNext', module: 'Preserve', lib: ['ESNext', 'DOM', 'DOM.Iterable'], types: ['bun'], noEmit: true },
    ...{ strict: true, noImplicitAny: false, noUncheckedIndexedAccess: true },
    ...{ skipLibCheck: true, allowImportingTsExtensions: true, allowJs: true, checkJs: true },
    paths: { 'agent-run-service-client': [join(ROOT, 'src/client/node.ts')] },
  }
  await Bun.write(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts', '*.js'] }))
  const { stdout } = await runProgram([join(ROOT, 'node_modules/.bin/tsc'), '-p', '.'], { cwd: project })
  expect(Object.keys(files).length).toBeGreaterThan(8)
  expect(stdout).toBe('')
})

test.skipIf(python === null)('Python compiles', async () => {
  const code = 'import json, sys\nfor each in json.load(sys.stdin): compile(each["text"], each["at"], "exec")'
  const { stderr } = await runProgram([python!, '-c', code], { stdin: JSON.stringify(inLanguage('python')) })
  expect(stderr).toBe('')
})
