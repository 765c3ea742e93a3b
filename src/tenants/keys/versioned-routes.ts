import { Elysia } from 'elysia'
import { VERSIONED, versioned } from '../../base/http/version.ts'
import type { Guards } from './guards.ts'
import { SECURITY } from './security.ts'

/**
 * An instance for the routes of something that workspace keys and admins edit, each edit making a new version: the answers
 * have an `ETag`, and `ifMatch` gives the version that a call names.
 */
export function versionedRoutes<const Prefix extends string>(guards: Guards, prefix: Prefix, tag: string) {
  return new Elysia({ prefix, detail: { tags: [tag], security: SECURITY.workspaceKey, ...VERSIONED } })
    .use(guards.workspaceKey('reads', 'admin'))
    .use(versioned)
}
