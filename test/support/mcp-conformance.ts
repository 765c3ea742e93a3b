import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { atEnd, temporaryDirectory } from './teardown.ts'

/** A check of the conformance suite of the protocol. */
export interface ConformanceCheck {
  readonly scenario: string
  readonly id: string
  readonly status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO'
  readonly errorMessage?: string
}

/** The package is a program, which nothing can import. */
const PROGRAM = join(import.meta.dir, '../../node_modules/@modelcontextprotocol/conformance/dist/index.js')
const TIMEOUT_MS = 60_000
/** The time at which a scenario ran, at the end of the name of its folder. */
const TIME = /-\d{4}-\d\d-\d\dT[\d-]+Z$/

/**
 * Runs all scenarios of the official conformance suite against the MCP server at `url`, in a process of its own: about two
 * seconds of processor time. Many need tools that only a server made for the suite has; those fail.
 */
export async function runConformance(url: string, key: string): Promise<readonly ConformanceCheck[]> {
  const results = await temporaryDirectory()
  const proxy = startProxy(url, key)
  const suite = Bun.spawn(
    [
      process.execPath,
      PROGRAM,
      'server',
      '--url',
      proxy,
      '--suite',
      'all',
      '-o',
      results,
      '--timeout',
      `${TIMEOUT_MS}`,
    ],
    { stdout: 'ignore', stderr: 'ignore' },
  )
  // It exits with 1 if any scenario fails.
  await suite.exited
  const folders = await readdir(results)
  const checks = folders.map(async (folder) => {
    const found: ConformanceCheck[] = await Bun.file(join(results, folder, 'checks.json')).json()
    return found.map((check) => ({ ...check, scenario: folder.replace(/^server-/, '').replace(TIME, '') }))
  })
  return (await Promise.all(checks)).flat()
}

/** The suite sends no keys, so a proxy adds one. */
function startProxy(url: string, key: string): string {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    development: false,
    async fetch(request) {
      const headers = new Headers(request.headers)
      headers.set('authorization', `Bearer ${key}`)
      headers.delete('accept-encoding')
      const body = request.method === 'POST' ? await request.text() : null
      return fetch(`${url}/mcp`, { method: request.method, headers, body })
    },
  })
  atEnd(() => server.stop(true))
  return `http://localhost:${server.port}/mcp`
}
