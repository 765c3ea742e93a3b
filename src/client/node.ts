import { BaseClient } from './client.ts'
import { onExit } from './exit.ts'
import { sendWithNode } from './node-http.ts'
import { openSpool } from './node-spool.ts'
import type { ClientOptions } from './options.ts'
import type { Platform } from './platform.ts'
import { VERSION } from './version.ts'

export * from './index.ts'

const NODE: Platform = {
  env: (name) => process.env[name],
  userAgent: `agent-run-service-js/${VERSION}`,
  warn: (error) => process.emitWarning(error),
  onExit,
  // Bun and Deno have a fetch that is faster than their node:http.
  transport: process.versions.bun === undefined && !('Deno' in globalThis) ? sendWithNode : undefined,
  openSpool,
}

/** A client of the Agent Run Service, for Node, Bun and Deno: docs/client.md. */
export class Client extends BaseClient {
  /** @throws Error when an option is missing or wrong, or the spool cannot be used */
  constructor(options: ClientOptions = {}) {
    super(options, NODE)
  }
}
