import { basename } from 'node:path'
import { ApiError } from '../errors.ts'
import { IS_PACKAGE } from '../script.ts'
import { ALWAYS_ASK, NEVER_ASK, type StaticFile, sendStaticFile, toStaticFile } from './static-file.ts'

/** The files of a web page. The URLs of those that it loads contain a hash of their content. */
export interface PageBundle {
  page(request: Request): Promise<Response>
  /** @throws ApiError NOT_FOUND */
  asset(request: Request, name: string): Promise<Response>
}

interface PageOptions {
  /** The path of `index.html`. */
  readonly entry: string
  /** The URL of the folder of what the page loads, with a slash at the end. */
  readonly publicPath: string
  readonly headers: Readonly<Record<string, string>>
}

/** A page that is bundled on first use, so that it does not delay the start of the service. */
export function pageBundle(options: PageOptions): PageBundle {
  let bundling: ReturnType<typeof bundlePage> | undefined
  const bundle = () => {
    bundling ??= bundlePage(options).catch((error) => {
      bundling = undefined
      throw error
    })
    return bundling
  }
  const answer = (request: Request, file: StaticFile, cacheControl: string) =>
    sendStaticFile(request, file, { ...options.headers, 'cache-control': cacheControl })
  return {
    page: async (request) => answer(request, (await bundle()).page, ALWAYS_ASK),
    async asset(request, name) {
      const file = (await bundle()).assets.get(name)
      if (file === undefined) throw new ApiError('NOT_FOUND', 'the page has no such file; load the page again')
      return answer(request, file, NEVER_ASK)
    },
  }
}

/** Takes about 30 ms. @throws AggregateError if it does not compile */
async function bundlePage({ entry, publicPath }: PageOptions) {
  const { outputs } = await Bun.build({
    entrypoints: [entry],
    publicPath,
    target: 'browser',
    minify: true,
    // The page must not contain the service's environment.
    env: 'disable',
    // `base/script.ts` asks for its folder, which the page must not contain either.
    define: { 'import.meta.dir': JSON.stringify(IS_PACKAGE ? '/node_modules/' : '') },
    // The SQL editor is a chunk that is loaded with its view.
    splitting: true,
  })
  let page: StaticFile | undefined
  // By the last segment of their URL, which contains a hash of their content.
  const assets = new Map<string, StaticFile>()
  for (const output of outputs) {
    const file = toStaticFile(new Uint8Array(await output.arrayBuffer()), output.type)
    if (output.path.endsWith('.html')) page = file
    else assets.set(basename(output.path), file)
  }
  if (page === undefined) throw new Error(`the bundle of ${entry} has no page`)
  return { page, assets }
}
