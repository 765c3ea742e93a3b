import { Elysia } from 'elysia'
import { ApiError, invalid } from '../errors.ts'
import { shown } from './validation-message.ts'

/** Versions of what callers edit, as `ETag` and `If-Match` (docs/api.md#versions). */

const PARAM = 'header If-Match'
/** A proxy that compresses the answer makes its tag a weak one. */
const TAG = /^(?:W\/)?"([1-9]\d{0,8})"$/

/** For the `detail` of the instance that uses {@link versioned}: says so in the OpenAPI document. */
export const VERSIONED = { versioned: true }

/** Sends the `version` of an answer as its `ETag`. What the routes of the instance change, they change at {@link ifMatch}. */
export const versioned = new Elysia({ name: 'versioned' }).onAfterHandle({ as: 'scoped' }, ({ responseValue, set }) => {
  const { version } = responseValue as { readonly version?: unknown }
  if (typeof version === 'number') set.headers.etag = `"${version}"`
})

/** The version that `If-Match` names; undefined without one, or for any. @throws ApiError VALIDATION_ERROR */
export function ifMatch({ headers }: Request): number | undefined {
  const given = headers.get('if-match')?.trim() ?? '*'
  if (given === '*') return undefined
  const version = TAG.exec(given)?.[1]
  if (version === undefined)
    throw invalid(PARAM, `expected the ETag of an answer, such as "3", or *; got ${shown(given)}`)
  return Number(version)
}

/** @param one what is to change, with an article @throws ApiError CONFLICT unless it is at the expected version, if any */
export function checkVersion(one: string, { version }: { version: number }, expected: number | undefined): void {
  if (expected !== undefined && version !== expected) throw versionChanged(one, version, expected)
}

/** @param one what has changed, with an article */
export function versionChanged(one: string, version: number, expected: number, param = PARAM): ApiError {
  const it = one.slice(one.indexOf(' ') + 1)
  return new ApiError('CONFLICT', `the ${it} has changed: it is at version ${version}, not ${expected}`, {
    reason: 'version_changed',
    param,
  })
}
