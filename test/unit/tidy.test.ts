import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import packageJson from '../../package.json'

/** The style rules that a machine can check. Each test lists the offenders, so that a failure says what to do. */

const ROOT = join(import.meta.dir, '..', '..')
const LINES_MAX = 600

interface Source {
  /** From the root of the project, as in `src/base/errors.ts`. */
  readonly path: string
  readonly text: string
  /** Its imports: our own files as paths from the root, packages by name. */
  readonly imports: readonly { readonly target: string; readonly isTypeOnly: boolean }[]
}

const sources: Source[] = [...new Bun.Glob('{src,test}/**/*.{ts,tsx}').scanSync(ROOT)]
  .filter((path) => !/^src\/client\/(generated|dist)\//.test(path))
  .sort()
  .map(readSource)
const product = sources.filter(({ path }) => path.startsWith('src/'))

function readSource(path: string): Source {
  const text = readFileSync(join(ROOT, path), 'utf8')
  const statements = text.matchAll(
    /^(?:import|export)\s(type\s)?[^;'"]*?from\s+'([^']+)'|^import\s+'([^']+)'|\bimport\('([^']+)'\)/gm,
  )
  const imports = [...statements].map(([, type, from, bare, dynamic]) => {
    const name = from ?? bare ?? dynamic ?? ''
    const target = name.startsWith('.')
      ? relative(ROOT, join(ROOT, dirname(path), name))
          .split(sep)
          .join('/')
      : name
    return { target, isTypeOnly: type !== undefined }
  })
  return { path, text, imports }
}

function offenders(of: readonly Source[], pattern: RegExp): string[] {
  return of.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, i) => (pattern.test(line) ? [`${path}:${i + 1}: ${line.trim()}`] : [])),
  )
}

/** The imports of these files that are wrong. */
function wrongImports(of: readonly Source[], isWrong: (target: string, path: string) => boolean): string[] {
  return of.flatMap(({ path, imports }) =>
    imports.filter(({ target }) => isWrong(target, path)).map(({ target }) => `${path} imports ${target}`),
  )
}

/** Only these name a backend; everything else receives one as an argument. */
const COMPOSITION = /^src\/(main\.ts|service\/|cli\/backup\/)/

test('finds the sources', () => {
  expect(product.length).toBeGreaterThan(50)
  expect(product.flatMap(({ imports }) => imports).length).toBeGreaterThan(200)
})

test(`no file is longer than ${LINES_MAX} lines`, () => {
  const long = sources.map(({ path, text }) => ({ path, lines: text.split('\n').length }))
  expect(long.filter(({ lines }) => lines > LINES_MAX)).toEqual([])
})

test('imports of our files name the file with its extension', () => {
  const isOurs = (target: string) => /^(src|test|sql|package)/.test(target)
  const isWrong = (target: string) => isOurs(target) && !/\.(tsx?|json|html|css|sql)$/.test(target)
  expect(wrongImports(sources, isWrong)).toEqual([])
})

/**
 * The folders within a folder, from the foundations up: those of `src`, and the modules of each. A file imports from its
 * own folder and from those before it, types included, so that the folders form no circle. Files beside the folders come
 * last, or where `OWN_FILES` stands.
 */
const OWN_FILES = '.'
const FOLDERS = new Map([
  [
    'src',
    [
      ['base', 'client'],
      ['stores', 'outbound'],
      ['tenants', 'openapi', 'activity', 'sql', 'dashboard', 'feeds', 'hosted', 'doors'],
      // Programs.
      ['service', 'cli'],
    ].flat(),
  ],
  ['src/base', [OWN_FILES, 'conventions', 'http']],
  ['src/stores', ['postgres', 'clickhouse', 'journal', 'sink', 'idempotency']],
  ['src/outbound', ['egress', 'model']],
  ['src/tenants', ['keys', 'partitions', 'workspaces', 'people', 'secrets']],
  ['src/activity', ['claims', 'agents', 'runs', 'events', 'tasks', 'scores', 'sessions']],
  ['src/sql', ['analytics', 'alerts']],
  ['src/feeds', ['live', 'webhooks']],
  ['src/doors', [OWN_FILES, 'traces', 'otlp', 'openai-traces', 'langfuse', 'mcp']],
  ['src/service', ['config', 'retention', 'store-marks', 'ops', 'backup', 'pipeline', OWN_FILES, 'workers']],
  ['src/cli', ['shared', 'setup', 'keys', 'tail', 'sql', 'demo', 'backup']],
  ['src/hosted', ['run', 'store', 'tools', 'output', 'executor', 'scheduler', 'invoke', 'pauses', 'sessions']],
  [
    'src/dashboard/page',
    [
      ['style', 'data', 'context', 'parts'],
      [
        'scores',
        'sql',
        'webhooks',
        'alerts',
        'boards',
        'runs',
        'waiting',
        'run',
        'compare',
        'overview',
        'live',
        'sessions',
        'users',
        'agents',
        'settings',
        'app',
      ],
    ].flat(),
  ],
])

for (const [parent, folders] of FOLDERS)
  test(`imports in ${parent} go one way: each folder imports only from those before it, types included`, () => {
    const rank = (path: string) => {
      const [folder = '', file] = path.slice(parent.length + 1).split('/')
      if (file !== undefined) return folders.indexOf(folder)
      return folders.includes(OWN_FILES) ? folders.indexOf(OWN_FILES) : folders.length
    }
    const inside = product.filter(({ path }) => path.startsWith(`${parent}/`))
    expect(inside.filter(({ path }) => rank(path) < 0).map(({ path }) => path)).toEqual([])
    const isWrong = (target: string, path: string) => target.startsWith(`${parent}/`) && rank(target) > rank(path)
    expect(wrongImports(inside, isWrong)).toEqual([])
  })

test('the root of src holds the program alone', () => {
  expect(product.map(({ path }) => path).filter((path) => path.split('/').length === 2)).toEqual(['src/main.ts'])
})

test('what is exported is used by another file', () => {
  const importers = new Map<string, Source[]>()
  for (const source of sources)
    for (const { target } of source.imports) importers.set(target, [...(importers.get(target) ?? []), source])
  const bad = product.flatMap(({ path, text }) =>
    [...text.matchAll(/^export (?:async |abstract )*(?:const|let|function\*?|class|interface|type) (\w+)/gm)]
      .filter(([, name]) => !(importers.get(path) ?? []).some((other) => new RegExp(`\\b${name}\\b`).test(other.text)))
      .map(([, name]) => `${path} exports ${name}`),
  )
  expect([...new Set(bad)]).toEqual([])
})

test('imports have no cycles, type-only imports included', () => {
  let rest = product
  for (let count = 0; count !== rest.length; ) {
    count = rest.length
    const paths = new Set(rest.map(({ path }) => path))
    const targets = new Set(rest.flatMap(({ imports }) => imports.map(({ target }) => target)))
    // A file without imports, or that nothing imports, is part of no cycle.
    rest = rest.filter(({ path, imports }) => targets.has(path) && imports.some(({ target }) => paths.has(target)))
  }
  expect(rest.map(({ path }) => path)).toEqual([])
})

test('the client library imports nothing but itself and Node, and that only from its own files for Node', () => {
  const client = product.filter(({ path }) => path.startsWith('src/client/'))
  const isWrong = (target: string, path: string) =>
    !target.startsWith('src/client/') && !(target.startsWith('node:') && /node/.test(path))
  expect(wrongImports(client, isWrong)).toEqual([])
})

test('what runs in the browser imports no module of Node, through our own files neither', () => {
  const byPath = new Map(product.map((source) => [source.path, source]))
  const seen = new Set(product.map(({ path }) => path).filter((path) => path.startsWith('src/dashboard/page/')))
  for (const path of seen) {
    for (const { target, isTypeOnly } of byPath.get(path)?.imports ?? []) if (!isTypeOnly) seen.add(target)
  }
  expect([...seen].filter((target) => target.startsWith('node:'))).toEqual([])
})

test('only the composition imports a backend', () => {
  const backends = /^src\/stores\/(postgres\/embedded|clickhouse\/engine|journal\/(local|nats))/
  const bad = product.flatMap(({ path, imports }) =>
    imports
      .filter(({ target, isTypeOnly }) => backends.test(target) && !isTypeOnly)
      .filter(({ target }) => dirname(target) !== dirname(path) && !COMPOSITION.test(path))
      .map(({ target }) => `${path} imports ${target}`),
  )
  expect(bad).toEqual([])
})

test('only the configuration reads the environment', () => {
  // The engine, the setup and the command-line programs are separate processes; the client library is for other programs.
  const own = /^src\/(service\/config\/config\.ts|stores\/clickhouse\/engine\/|client\/node\.ts|cli\/\w+\/main\.ts)/
  const others = product.filter(({ path }) => !own.test(path))
  expect(offenders(others, /process\.env|Bun\.env|import\.meta\.env/)).toEqual([])
})

/** TypeScript refuses a string as the index of any other object literal. */
test('what is looked up by a word from outside is a map: every object has `constructor` and `__proto__`', () => {
  // `const A: Record<string, B> = {` of a module; use `lookup` of src/base/lookup.ts.
  expect(offenders(product, /^(?:export )?const \w+:.*Record<string,.*= \{/)).toEqual([])
  // `name in members`; use `Object.hasOwn`.
  expect(offenders(product, /[(!&|]\s*[a-z]\w* in \w+\b(?! of)/)).toEqual([])
})

test('contains no unfinished, suppressed or debugging code', () => {
  const self = 'test/unit/tidy.test.ts'
  const rest = sources.filter(({ path }) => path !== self)
  expect(offenders(rest, /\b(TODO|FIXME|XXX|HACK)\b/)).toEqual([])
  expect(offenders(product, /\bconsole\.(log|debug|info|warn|error)\b|\bdebugger\b/)).toEqual([])
  expect(offenders(rest, /@ts-(ignore|nocheck|expect-error)/)).toEqual([])
  expect(offenders(rest, /\b(test|it|describe)\.(only|skip|todo)\(/)).toEqual([])
})

test('contains no path or registry of the machine it was written on', () => {
  const files = ['package.json', 'bunfig.toml', 'bun.lock', 'tsconfig.json', 'biome.json', '.ci/run']
  const all = [
    ...sources,
    ...files.map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8'), imports: [] })),
  ]
  expect(offenders(all, /['"`(\s](\/work\/|\/root\/|\/home\/|\/Users\/)/)).toEqual([])
  expect(offenders(all, /https?:\/\/(registry\.|[\w.-]*(npmjs|npmmirror|artifactory|nexus)\.)/)).toEqual([])
})

test('commands in guides, help and hints work where they are typed, also without a bun on the PATH', () => {
  const guides = ['README.md', ...new Bun.Glob('docs/*.md').scanSync(ROOT)].map((path) => ({
    path,
    text: readFileSync(join(ROOT, path), 'utf8'),
    imports: [],
  }))
  const mains = sources.filter(({ path }) => /^test\/(\w+\/)?main\.ts$/.test(path))
  // Comments are for people who read the code.
  const code = [...product, ...mains].map((source) => ({
    ...source,
    text: source.text.replaceAll(/^\s*(\/?\*|\/\/).*$/gm, ''),
  }))
  expect(guides.filter(({ text }) => text.includes('npx --yes bun run')).length).toBeGreaterThan(4)
  expect(offenders([...guides, ...code], /(?<!npx --yes )\bbun run\b/)).toEqual([])
  expect(offenders(guides, /^\s*(\w+=\S+ )*bun /)).toEqual([])
})

test('citations of the guides name existing headings', () => {
  const sql = [...new Bun.Glob('sql/**/*.sql').scanSync(ROOT)].sort().map(readSource)
  const rest = [...sources, ...sql].filter(({ path }) => path !== 'test/unit/tidy.test.ts')
  expect(offenders(rest, /\b(contract|spec) +sections?\b/i)).toEqual([])
  const cited = rest.flatMap(({ path, text }) =>
    [...text.matchAll(/\b(docs\/[\w-]+\.md)(?:#([\w-]+))?/g)].map(([, file = '', anchor]) => ({ path, file, anchor })),
  )
  expect(cited.length).toBeGreaterThan(100)
  expect(deadLinks(cited)).toEqual([])
})

test('links between documents are valid', () => {
  const documents = ['README.md', 'src/README.md', ...new Bun.Glob('docs/*.md').scanSync(ROOT)]
  const links = documents.flatMap((path) =>
    [...readFileSync(join(ROOT, path), 'utf8').matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].map(
      ([, target = '', anchor]) => ({ path, file: target === '' ? path : join(dirname(path), target), anchor }),
    ),
  )
  expect(links.length).toBeGreaterThan(20)
  expect(deadLinks(links)).toEqual([])
})

interface Link {
  readonly path: string
  readonly file: string
  readonly anchor: string | undefined
}

function deadLinks(links: readonly Link[]): string[] {
  return links
    .filter(
      ({ file, anchor }) =>
        !existsSync(join(ROOT, file)) || (anchor !== undefined && !anchorsOf(join(ROOT, file)).includes(anchor)),
    )
    .map(({ path, file, anchor }) => `${path}: ${file}${anchor === undefined ? '' : `#${anchor}`}`)
}

/** The anchors that GitHub makes of a document's headings. */
function anchorsOf(file: string): string[] {
  const prose = readFileSync(file, 'utf8').replaceAll(/^```[\s\S]*?^```/gm, '')
  return [...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, '')
      .replaceAll(' ', '-'),
  )
}

const SUBJECT_LENGTH_MAX = 72
/** The newest subject that is not as it should be; those before it are left alone. */
const LAST_LONG_SUBJECT = 'webhooks: what throws while results are prepared is told, and ends nothing else'

test(`subjects of commits are \`area: what\`, in at most ${SUBJECT_LENGTH_MAX} characters`, () => {
  const isRight = (subject: string) => subject.length <= SUBJECT_LENGTH_MAX && /^[a-z][\w ,./-]*: \S/.test(subject)
  expect(isRight(LAST_LONG_SUBJECT)).toBe(false)
  // A copy without history, or with the newest part of it, has less to look at.
  if (!existsSync(join(ROOT, '.git')) || Bun.which('git') === null) return
  const log = Bun.spawnSync(['git', 'log', '--no-merges', '--format=%s'], { cwd: ROOT }).stdout.toString()
  const [newer = ''] = `${log}\n`.split(`${LAST_LONG_SUBJECT}\n`)
  const wrong = newer.split('\n').filter((subject) => subject !== '' && !isRight(subject))
  // `git rebase -i` changes those that are not pushed yet.
  expect(wrong).toEqual([])
})

const { dependencies, devDependencies } = packageJson

test('versions in package.json are exact', () => {
  const versions = Object.entries({ ...dependencies, ...devDependencies })
  expect(versions.filter(([, version]) => !/^\d/.test(version))).toEqual([])
})

test('what the service imports is installed without the development dependencies', () => {
  const isOurs = (target: string) => /^(src|test|sql|package\.json)/.test(target) || /^(bun|node):|^bun$/.test(target)
  const bad = product.flatMap(({ path, imports }) =>
    imports
      .filter(({ target }) => !isOurs(target))
      .map(({ target }) => /^(@[^/]+\/)?[^/]+/.exec(target)?.[0] ?? target)
      .filter((name) => !Object.hasOwn(dependencies, name))
      .map((name) => `${path} imports ${name}`),
  )
  expect(bad).toEqual([])
})
