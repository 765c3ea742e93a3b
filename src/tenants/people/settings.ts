import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { isObject, parsedJson } from '../../base/json-object.ts'
import { ROLES, type Role } from '../keys/schema.ts'

const UUID = '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'

/** How people sign in (docs/people.md). */
export interface PeopleConfig {
  /** URL of the provider, without `/.well-known/…`. */
  readonly issuer: string
  readonly clientId: string
  readonly clientSecret: string
  /** The origin at which browsers reach the service. */
  readonly publicUrl: string
  readonly scopes: string
  readonly roleClaim: string
  readonly roles: RoleTable
  /** The workspace that everyone enters; undefined: the oldest. */
  readonly workspace: string | undefined
  /** The claim that lists the workspaces of a person; undefined: everyone enters the same one. */
  readonly workspaceClaim: string | undefined
  readonly sessionMs: number
  readonly idleSeconds: number
  /** Whether the page also accepts a workspace key. */
  readonly takesKeys: boolean
}

/** The role for each value of the claim; `*` is everyone. */
type RoleTable = ReadonlyMap<string, Role>

const ANYONE = '*'
const DAY_SECONDS = 86_400
const ClaimName = Type.String({ pattern: '^[!-~]{1,200}$' })
const Seconds = Type.Integer({ minimum: 60, maximum: 30 * DAY_SECONDS })

/** `OIDC_OPTIONS`: what differs between providers and between companies. */
const Options = Type.Object(
  {
    scopes: Type.String({ pattern: '^openid( [!-~]+)*$', default: 'openid profile email' }),
    role_claim: { ...ClaimName, default: 'roles' },
    // Without a default: TypeBox would merge its members with the given ones.
    roles: Type.Optional(Type.Record(Type.String(), Type.Union(ROLES.map((role) => Type.Literal(role))))),
    workspace: Type.Optional(Type.String({ pattern: UUID })),
    workspace_claim: Type.Optional(ClaimName),
    session_seconds: { ...Seconds, default: DAY_SECONDS / 2 },
    idle_seconds: { ...Seconds, default: 7_200 },
    page_keys: Type.Boolean({ default: true }),
  },
  { additionalProperties: false },
)

type PeopleOptions = Omit<PeopleConfig, 'issuer' | 'clientId' | 'clientSecret' | 'publicUrl'>

/**
 * @param text a JSON object; what it leaves out has its default
 * @throws Error whose message continues after the name of the variable
 */
export function parsePeopleOptions(text: string): PeopleOptions {
  const options = Value.Default(Options, parsedJson(text))
  if (!Value.Check(Options, options)) {
    const wrong = Value.Errors(Options, options).First()
    const place = wrong?.path.slice(1).replaceAll('/', '.') ?? ''
    throw new Error(place === '' ? 'must be a JSON object' : `has a wrong member "${place}": ${wrong?.message}`)
  }
  if (options.workspace !== undefined && options.workspace_claim !== undefined)
    throw new Error('may have one of workspace and workspace_claim, not both')
  return {
    scopes: options.scopes,
    roleClaim: options.role_claim,
    roles: new Map(options.roles === undefined ? ROLES.map((role) => [role, role]) : Object.entries(options.roles)),
    workspace: options.workspace?.toLowerCase(),
    workspaceClaim: options.workspace_claim,
    sessionMs: options.session_seconds * 1000,
    idleSeconds: options.idle_seconds,
    takesKeys: options.page_keys,
  }
}

/** The highest role of any of the values in the table; undefined if none has a role. */
export function roleOf(values: readonly string[], table: RoleTable): Role | undefined {
  const given = [...values, ANYONE].map((value) => table.get(value))
  return ROLES.findLast((role) => given.includes(role))
}

const VALUES_MAX = 1_000

/**
 * The values of a claim: a string, the strings of a list, or the names of an object's members, of which those that are
 * `false` or null are not given. A path such as
 * `realm_access.roles` names a nested claim, unless there is a claim of exactly that name.
 */
export function claimValues(claims: object, name: string): string[] {
  const value = memberOf(claims, name) ?? name.split('.').reduce<unknown>(memberOf, claims)
  const isGiven = ([, given]: readonly [string, unknown]) => given !== false && given !== null
  const values = isObject(value)
    ? Object.entries(value)
        .filter(isGiven)
        .map(([member]) => member)
    : [value].flat()
  return values.filter((each) => typeof each === 'string').slice(0, VALUES_MAX)
}

function memberOf(of: unknown, name: string): unknown {
  return isObject(of) && Object.hasOwn(of, name) ? of[name] : undefined
}
