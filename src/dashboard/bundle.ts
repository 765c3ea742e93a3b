import { createHash } from 'node:crypto'
import { basename, join } from 'node:path'
import { IS_PACKAGE } from '../base/script.ts'

/** A file of the page, ready to be sent. */
export interface PageFile {
  readonly type: string
  /** Hash of its content. */
  readonly hash: string
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly gzip: Uint8Array<ArrayBuffer>
  readonly zstd: Uint8Array<ArrayBuffer>
}

interface PageBundle {
  readonly page: PageFile
  /** By the last segment of their URL, which contains a hash of their content. */
  readonly assets: ReadonlyMap<string, PageFile>
}

/**
 * Bundles `page/` into the files that browsers load. Takes about 30 ms, once. @throws AggregateError if it does not
 * compile
 */
export async function bundlePage(): Promise<PageBundle> {
  const { outputs } = await Bun.build({
    entrypoints: [join(import.meta.dir, 'page', 'index.html')],
    publicPath: '/dashboard/',
    target: 'browser',
    minify: true,
    // The page must not contain the service's environment.
    env: 'disable',
    // `base/script.ts` asks for its folder, which the page must not contain either.
    define: { 'import.meta.dir': JSON.stringify(IS_PACKAGE ? '/node_modules/' : '') },
    // The SQL editor is a chunk that is loaded with its view.
    splitting: true,
  })
  let page: PageFile | undefined
  const assets = new Map<string, PageFile>()
  for (const output of outputs) {
    const file = toFile(new Uint8Array(await output.arrayBuffer()), output.type)
    if (output.path.endsWith('.html')) page = file
    else assets.set(basename(output.path), file)
  }
  if (page === undefined) throw new Error('the bundle of the dashboard has no page')
  return { page, assets }
}

function toFile(bytes: Uint8Array<ArrayBuffer>, type: string): PageFile {
  return {
    type,
    hash: createHash('sha256').update(bytes).digest('base64url').slice(0, 22),
    bytes,
    gzip: Bun.gzipSync(bytes, { level: 9 }),
    // Its type allows for shared memory, which it never uses.
    zstd: Bun.zstdCompressSync(bytes, { level: 19 }) as Buffer<ArrayBuffer>,
  }
}
