import { ApiError } from '../../base/errors.ts'
import { type Person, ROLES, type Role } from '../keys/schema.ts'

/**
 * The role that a request needs, if not by its method (docs/specification.md#roles): GET needs a viewer, anything that is not
 * listed here an admin. So a new route is open to nobody by accident.
 */
const EXCEPTIONS: readonly (readonly [method: string, path: RegExp, role: Role])[] = [
  // Queries only read.
  ['POST', /^\/api\/v1\/query$/, 'viewer'],
  ['POST', /^\/api\/v1\/queries\/[^/]+\/run$/, 'viewer'],
  ['POST', /^\/api\/v1\/alerts\/([^/]+\/)?test$/, 'viewer'],
  // People's own sign-ins.
  ['POST', /^\/api\/v1\/sign-out$/, 'viewer'],
  ['POST', /^\/api\/v1\/sign-in\/workspace$/, 'viewer'],
  ['POST', /^\/api\/v1\/approvals\/[^/]+\/(approve|reject)$/, 'approver'],
  ['POST', /^\/api\/v1\/input-requests\/[^/]+\/answer$/, 'approver'],
  ['POST', /^\/api\/v1\/runs\/[^/]+\/(cancel|scores)$/, 'approver'],
]

const FEED_TOKENS = /^\/api\/v1\/feed-tokens$/

function neededFor(method: string, path: string): Role {
  const listed = EXCEPTIONS.find(([each, pattern]) => each === method && pattern.test(path))
  if (listed !== undefined) return listed[2]
  return method === 'GET' || method === 'HEAD' ? 'viewer' : 'admin'
}

/** @throws ApiError FORBIDDEN unless the role of the person allows the request */
export function checkRole({ method, url }: Request, person: Person): void {
  const path = new URL(url).pathname
  if (FEED_TOKENS.test(path))
    throw new ApiError('FORBIDDEN', 'people who are signed in need no feed token: feeds open with the cookie', {
      reason: 'wrong_key_type',
    })
  requireRole(person, neededFor(method, path))
}

/** For a route that needs a higher role than its method. @throws ApiError FORBIDDEN if the person has a lower role */
export function requireRole({ role }: Person, needed: Role): void {
  if (ROLES.indexOf(role) < ROLES.indexOf(needed))
    throw new ApiError('FORBIDDEN', `this needs the role ${needed}; you have the role ${role}`, {
      reason: 'role_too_low',
    })
}
