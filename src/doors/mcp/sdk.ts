/** The package that speaks the protocol: https://github.com/modelcontextprotocol/typescript-sdk */
export type Sdk = typeof import('@modelcontextprotocol/server')

let loaded: Promise<Sdk> | undefined

/**
 * The package, loaded by the first client: it takes 200 ms of CPU and 15 MB, which a service without such clients saves. It is
 * loaded in steps of at most 50 ms, between which other requests are answered.
 */
export function loadSdk(): Promise<Sdk> {
  loaded ??= load().catch((error: unknown) => {
    loaded = undefined
    throw error
  })
  return loaded
}

async function load(): Promise<Sdk> {
  // Both are parts of the package, and would otherwise be loaded with it at once.
  await import('zod')
  await nextTurn()
  await import('@modelcontextprotocol/core/internal')
  await nextTurn()
  const sdk = await import('@modelcontextprotocol/server')
  await nextTurn()
  sdk.preloadSchemas()
  await nextTurn()
  return sdk
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
