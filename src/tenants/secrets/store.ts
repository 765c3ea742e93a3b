import type { Clock } from '../../base/clock.ts'
import { invalid } from '../../base/errors.ts'
import type { PageOf } from '../../base/http/page.ts'
import type { PageQuery } from '../../base/http/schema.ts'
import { withIsoTimes } from '../../base/timestamp.ts'
import { inTransaction, type Sql } from '../../stores/postgres/connect.ts'
import { workspaceResource } from '../../stores/postgres/workspace-resource.ts'
import type { Caller } from '../keys/schema.ts'
import { redactor } from './redact.ts'
import {
  type DeletedSecret,
  type PutSecret,
  type SecretRecord,
  type SecretRow,
  secretNameProblem,
  secretValueProblem,
} from './schema.ts'
import type { Sealed, Vault } from './vault.ts'

/** The part of the secret store that tools use. */
export type Secrets = Pick<SecretStore, 'fill'>

export interface FilledHeaders {
  readonly headers: Record<string, string>
  /** Redacts every filled secret in a text, in plain form or encoded as base64, URL or JSON. */
  redact(text: string): string
}

/** Most secrets of a workspace. */
export const SECRETS_MAX = 1_000

/**
 * Limit of a header with its secrets filled in: the longest header around the longest secret. Servers accept no more.
 */
const FILLED_LENGTH_MAX = 16_384

const ROWS = workspaceResource({ table: 'secrets', id: 'name', one: 'a secret', many: 'secrets', max: SECRETS_MAX })

const PLACEHOLDER = /\{\{\s*secret:([^{}]*?)\s*\}\}/g

/**
 * A header refers to a secret that is not available, or is too long with it. The message may be shown to the model and
 * the caller.
 */
export class HeadersNotFilled extends Error {
  override readonly name = 'HeadersNotFilled'
}

/**
 * Secrets of workspaces (docs/hosted-agents.md#secrets): write-only over HTTP, sealed in the database, decrypted only
 * for the call that sends them. Nothing is cached, so a change or deletion takes effect with the next call.
 */
export class SecretStore {
  constructor(private readonly deps: { readonly sql: Sql; readonly clock: Clock; readonly vault: Vault }) {}

  /**
   * Creates or replaces a secret; at a given version only the latter.
   * @throws ApiError VALIDATION_ERROR that does not repeat the value; NOT_FOUND with a version; CONFLICT at another version,
   *   or if the workspace already has the maximum number of secrets
   */
  async put(
    { workspaceId }: Caller,
    name: string,
    { value }: PutSecret,
    version: number | undefined,
  ): Promise<SecretRecord> {
    const { sql, clock, vault } = this.deps
    checkName(name)
    const problem = secretValueProblem(value)
    if (problem !== null) throw invalid('value', problem)
    const { sealed, key_id } = vault.seal(value as string, { workspaceId, name })
    const now = new Date(clock.now())
    if (version !== undefined) {
      const changed = { sealed, key_id, updated_at: now }
      return withIsoTimes(await ROWS.update<SecretRow>(sql, { workspaceId, key: name, version }, changed, columns(sql)))
    }
    const row = { workspace_id: workspaceId, name, sealed, key_id, created_at: now, updated_at: now }
    return inTransaction(sql, async (tx) => {
      await ROWS.reserve(tx, workspaceId, name)
      const [kept] = await tx<[SecretRow]>`
        insert into secrets ${tx(row)}
        on conflict (workspace_id, name) do update set
          sealed = excluded.sealed, key_id = excluded.key_id, updated_at = excluded.updated_at,
          version = secrets.version + 1
        returning ${columns(sql)}`
      return withIsoTimes(kept)
    })
  }

  list({ workspaceId }: Caller, page: PageQuery): Promise<PageOf<SecretRecord>> {
    const { sql } = this.deps
    return ROWS.page(sql, workspaceId, page, columns(sql), withIsoTimes<SecretRow>)
  }

  /** @throws ApiError VALIDATION_ERROR, NOT_FOUND; CONFLICT at another version */
  async delete({ workspaceId }: Caller, name: string, version: number | undefined): Promise<DeletedSecret> {
    checkName(name)
    await ROWS.remove(this.deps.sql, { workspaceId, key: name, version })
    return { name, deleted: true }
  }

  /**
   * Fills `{{secret:NAME}}` in the values of headers. Looks nothing up when there is none.
   * @throws HeadersNotFilled
   */
  async fill(workspaceId: string, headers: Readonly<Record<string, string>>): Promise<FilledHeaders> {
    const names = new Set(Object.values(headers).flatMap((value) => [...value.matchAll(PLACEHOLDER)].map(([, n]) => n)))
    if (names.size === 0) return { headers: { ...headers }, redact: (text) => text }
    const values = await this.open(workspaceId, [...names])
    const filled = Object.entries(headers).map(([name, value]) => [name, filledValue(name, value, values)])
    return { headers: Object.fromEntries(filled), redact: redactor([...values.values()]) }
  }

  private async open(workspaceId: string, names: readonly string[]): Promise<Map<string, string>> {
    const { sql, vault } = this.deps
    const rows = await sql<(Sealed & { name: string })[]>`
      select name, sealed, key_id from secrets where workspace_id = ${workspaceId} and name in ${sql(names)}`
    const values = new Map<string, string>()
    for (const name of names) {
      const row = rows.find((each) => each.name === name)
      if (row === undefined) throw new HeadersNotFilled(`secret ${name} does not exist: PUT /api/v1/secrets/${name}`)
      const value = vault.open(row, { workspaceId, name })
      if (value === null)
        throw new HeadersNotFilled(
          `secret ${name} was sealed with another SECRETS_KEY: PUT /api/v1/secrets/${name} again`,
        )
      values.set(name, value)
    }
    return values
  }
}

/** The length is added up before anything is filled. @throws HeadersNotFilled */
function filledValue(name: string, value: string, secrets: ReadonlyMap<string, string>): string {
  let length = value.length
  for (const [whole, secret] of value.matchAll(PLACEHOLDER)) length += secrets.get(secret!)!.length - whole.length
  if (length > FILLED_LENGTH_MAX)
    throw new HeadersNotFilled(
      `header ${name}, its secrets filled in, may have at most ${FILLED_LENGTH_MAX} characters`,
    )
  return value.replaceAll(PLACEHOLDER, (_, secret: string) => secrets.get(secret)!)
}

function columns(sql: Sql) {
  return sql`name, version, created_at, updated_at`
}

function checkName(name: string): void {
  const problem = secretNameProblem(name)
  if (problem !== null) throw invalid('path.name', problem)
}
